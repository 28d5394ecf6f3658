// What is known of a node: facts, attributes, codecs, storage, documents.
import type { Info } from "./api.ts";
import { bytes, Copy, Section, Trouble } from "./parts.tsx";

export function About({ info }: { info: Info }) {
  const attributes = Object.entries(info.attributes);
  return (
    <div class="about" tabIndex={0} aria-label="Facts">
      {info.error && <Trouble message={info.error} />}
      {info.notes?.map((note) => (
        <p class="note" key={note}>
          {note}
        </p>
      ))}
      <Section title="Facts">
        <table class="facts">
          <tbody>
            {info.facts.map(([name, value]) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td>{value}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Section>
      <Storage info={info} />
      <Section title={`Attributes (${attributes.length})`}>
        {attributes.length === 0 && <p class="soft">None.</p>}
        <table class="facts">
          <tbody>
            {attributes.map(([name, value]) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td>
                  <Value value={value} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Section>
      {info.codecs.length > 0 && (
        <Section title="Codecs, in the order of writing">
          <ol class="codecs">
            {info.codecs.map((codec, k) => (
              <li key={k}>
                <Codec codec={codec} />
              </li>
            ))}
          </ol>
        </Section>
      )}
      {Object.entries(info.documents).map(([name, text]) => (
        <Section key={name} title={name}>
          <div class="document">
            <Copy text={text} label={`Copy ${name}`} />
            <pre tabIndex={0}>{text}</pre>
          </div>
        </Section>
      ))}
    </div>
  );
}

function Storage({ info: { storage } }: { info: Info }) {
  if (!storage || storage.size === null) return null;
  const { stored, size, chunks, chunks_stored: there } = storage;
  const part = stored !== null && size > 0 ? stored / size : null;
  return (
    <Section title="Storage">
      <p>
        {bytes(size)} of values
        {stored !== null && <> in {bytes(stored)} stored</>}
        {part !== null && part > 0 && <>, {part < 1 ? `${(1 / part).toPrecision(3)} times smaller` : `${part.toPrecision(3)} times as large`}</>}
        {chunks !== null && <>; {there === null ? chunks : `${there} of ${chunks}`} chunks{there === null ? "" : " stored"}</>}.
      </p>
      {part !== null && (
        <div class="bar" role="img" aria-label={`${Math.round(100 * part)} % of the size of the values`}>
          <span style={{ width: `${Math.min(100, 100 * part)}%` }} />
        </div>
      )}
    </Section>
  );
}

function Codec({ codec }: { codec: unknown }) {
  if (codec === null || typeof codec !== "object") return <code>{String(codec)}</code>;
  const { name, id, configuration, text: _, ...rest } = codec as Record<string, unknown>;
  const settings = { ...(configuration as object | undefined), ...rest };
  return (
    <>
      <b>{String(name ?? id ?? "?")}</b>{" "}
      {Object.entries(settings).map(([key, value]) => (
        <code key={key}>
          {key}={JSON.stringify(value)}{" "}
        </code>
      ))}
    </>
  );
}

/** A JSON value: short ones in a line, long ones folded. */
function Value({ value }: { value: unknown }) {
  if (typeof value === "string") return isLink(value) ? <a href={value} rel="noreferrer noopener" target="_blank">{value}</a> : <>{value}</>;
  const text = JSON.stringify(value);
  if (value === null || typeof value !== "object" || text.length < 100) return <code>{text}</code>;
  const count = Array.isArray(value) ? `${value.length} items` : `${Object.keys(value).length} entries`;
  return (
    <details>
      <summary>{count}</summary>
      <pre>{JSON.stringify(value, null, 2)}</pre>
    </details>
  );
}

const isLink = (text: string) => /^https?:\/\/\S+$/.test(text);
