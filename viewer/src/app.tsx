// The page: what it shows is said by its address.
import { render } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import * as api from "./api.ts";
import type { DatasetEntry, Info } from "./api.ts";
import { About } from "./about.tsx";
import { ChunkMap } from "./chunkmap.tsx";
import { Contents } from "./contents.tsx";
import { NAMES } from "./colours.ts";
import { Help } from "./help.tsx";
import { Line } from "./line.tsx";
import { FRESH, fromHash, toHash, type Look, type Tab } from "./look.ts";
import { Trouble, useAnswer, Waiting } from "./parts.tsx";
import { Picture, type Change, type Shown } from "./picture.tsx";
import { resolve } from "./resolve.ts";
import { Values } from "./table.tsx";
import { nextTheme, startTheme } from "./theme.ts";
import { TileCache } from "./tiles.ts";
import { Sidebar } from "./tree.tsx";

const cache = new TileCache();

function App() {
  const { answer, error, again } = useAnswer(api.datasets, []);
  if (error) return <Trouble message={error} again={again} />;
  if (!answer) return <Waiting what="the datasets" />;
  return <Page entries={answer.datasets} version={answer.version} />;
}

/** The look, kept in step with the address: new nodes are steps back in the browser's history. */
function useLook(): [Look, Change] {
  const [look, setLook] = useState(() => fromHash(location.hash));
  useLayoutEffect(() => {
    const onHash = () => setLook(fromHash(location.hash));
    window.addEventListener("hashchange", onHash);
    window.addEventListener("popstate", onHash);
    return () => {
      window.removeEventListener("hashchange", onHash);
      window.removeEventListener("popstate", onHash);
    };
  }, []);
  useEffect(() => {
    // Browsers allow so many changes of the address in a time: while something plays or moves, the last one counts.
    const timer = setTimeout(() => {
      const now = fromHash(location.hash);
      const address = `#${toHash(look)}`;
      if (address === location.hash) return;
      const isElsewhere = location.hash !== "" && (now.dataset !== look.dataset || now.path !== look.path);
      history[isElsewhere ? "pushState" : "replaceState"](null, "", address);
    }, 120);
    return () => clearTimeout(timer);
  }, [look]);
  return [look, (patch) => setLook((old) => ({ ...old, ...patch }))];
}

function Page({ entries, version }: { entries: DatasetEntry[]; version: string }) {
  const [look, change] = useLook();
  const [isTreeOpen, setTreeOpen] = useState(() => window.innerWidth > 760);
  const [isHelpOpen, setHelpOpen] = useState(false);
  const [, setTheme] = useState(startTheme);
  const actions = useRef<Record<string, () => void>>({});
  const entry = entries[look.dataset] ?? entries[0]!;
  const first = useAnswer(() => nodeAt(entry.number, look.path), [entry.number, look.path]);
  const second = useAnswer(
    () => (look.beside ? nodeAt(look.beside.dataset, look.beside.path) : Promise.resolve(null)),
    [look.beside?.dataset, look.beside?.path],
  );
  const shown = useMemo<Shown | null>(() => first.answer && { entry, info: first.answer.drawn }, [first.answer]);
  const beside = useMemo<Shown | null>(
    () => (look.beside && second.answer ? { entry: entries[look.beside.dataset] ?? entry, info: second.answer.drawn } : null),
    [second.answer],
  );
  const resolved = useMemo(() => (shown ? resolve(shown.info, look) : null), [shown, look]);
  const open = (dataset: number, path: string) => {
    // The node that is shown stays as it is.
    if (dataset !== entry.number || path !== look.path) change({ ...FRESH, dataset, path });
    if (window.innerWidth <= 760) setTreeOpen(false);
  };
  const other = entries.find(({ number }) => number !== entry.number);
  const compare = () => change(look.beside ? { beside: null, view: null } : other ? { beside: { dataset: other.number, path: look.path }, range: null, view: null } : {});

  useEffect(() => {
    document.title = [look.path || entry.name, "omnizarr"].join(" · ");
  }, [look.path, entry]);
  // A layout effect: a key pressed right after a change already meets the page as it is now.
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const target = event.target as HTMLElement;
      const isTyping = target.matches("input:not([type=range]):not([type=checkbox]):not([type=radio]), select, textarea");
      // The dialog itself is asked: its "close" event, and the state that follows, come a moment later.
      if (isTyping || document.querySelector("dialog[open]")) return;
      const command = commands[event.key] ?? (target.matches("canvas") ? moves[event.key] : undefined);
      if (!command) return;
      event.preventDefault();
      command();
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  });

  const act = (name: string) => () => actions.current[name]?.();
  const showTab = (k: number) => () => resolved?.tabs[k] && change({ tab: resolved.tabs[k]! });
  const commands: Record<string, () => void> = {
    "/": () => {
      setTreeOpen(true);
      setTimeout(() => document.getElementById("search")?.focus());
    },
    "?": () => setHelpOpen(true),
    "1": showTab(0), "2": showTab(1), "3": showTab(2), "4": showTab(3), "5": showTab(4),
    "[": act("previous"), "]": act("next"), p: act("play"),
    "+": act("zoomIn"), "=": act("zoomIn"), "-": act("zoomOut"), "0": act("fit"),
    r: act("rescale"), l: act("log"), g: act("grid"), o: act("coast"), f: act("flip"), x: act("swap"), s: act("save"),
    c: () => change({ colours: NAMES[(NAMES.indexOf(look.colours) + 1) % NAMES.length]! }),
    C: () => change({ colours: NAMES[(NAMES.indexOf(look.colours) + NAMES.length - 1) % NAMES.length]! }),
    v: () => change({ reversed: !look.reversed }),
    m: compare,
    t: () => setTreeOpen(!isTreeOpen),
    d: () => setTheme(nextTheme()),
  };
  const moves: Record<string, () => void> = { ArrowLeft: act("left"), ArrowRight: act("right"), ArrowUp: act("up"), ArrowDown: act("down") };

  return (
    <div class={`page ${isTreeOpen ? "" : "without-tree"}`}>
      <header>
        <button class="plain" aria-label="Show or hide the hierarchy" aria-expanded={isTreeOpen} title="Hierarchy (t)" onClick={() => setTreeOpen(!isTreeOpen)}>
          ☰
        </button>
        <Crumbs entry={entry} path={look.path} onOpen={open} />
        <span class="format">{shown?.info.format ?? entry.format}</span>
        <span class="gap" />
        {(other || look.beside) && (
          <button aria-pressed={look.beside !== null} onClick={compare} title="Side by side (m)">
            {look.beside ? "End comparison" : "Compare"}
            {!look.beside && <span class="other"> with {other!.name}</span>}
          </button>
        )}
        <button class="plain" aria-label="Light, dark or as the system" title="Light or dark (d)" onClick={() => setTheme(nextTheme())}>
          ◐
        </button>
        <button class="plain" aria-label="Keys and help" title="Keys (?)" onClick={() => setHelpOpen(true)}>
          ?
        </button>
      </header>
      {isTreeOpen && (
        <Sidebar
          entries={entries}
          current={{ dataset: entry.number, path: look.path }}
          beside={look.beside}
          onOpen={open}
          onBeside={(dataset, path) => change({ beside: { dataset, path }, tab: null, range: null, view: null })}
        />
      )}
      <main>
        {first.error && <Trouble message={first.error} again={first.again} />}
        {second.error && <Trouble message={second.error} again={second.again} />}
        {!first.answer && !first.error && <Waiting what={look.path || entry.name} />}
        {shown && resolved && first.answer && (
          <>
            <Tabs tabs={resolved.tabs} tab={resolved.tab} title={titleOf(shown)} onTab={(tab) => change({ tab })} />
            {resolved.tab === "contents" && <Contents key={`${entry.number}:${look.path}`} dataset={entry.number} info={first.answer.info} onOpen={(path) => open(entry.number, path)} />}
            {resolved.tab === "picture" && <Picture key={`${entry.number}:${look.path}`} {...{ shown, beside, look, resolved, change, cache, actions }} />}
            {resolved.tab === "line" && <Line {...{ shown, beside, look, resolved, change }} />}
            {resolved.tab === "table" && <Values key={`${entry.number}:${look.path}`} {...{ shown, resolved, change }} />}
            {resolved.tab === "chunks" && <ChunkMap key={`${entry.number}:${look.path}`} {...{ shown, look, resolved, change }} />}
            {resolved.tab === "about" && <About info={first.answer.info} />}
          </>
        )}
      </main>
      {isHelpOpen && <Help version={version} onClose={() => setHelpOpen(false)} />}
    </div>
  );
}

/** Asked for before anything is drawn: what the address says is nearly always what is shown first. */
const early = fromHash(location.hash);
const earlyInfo = api.info(early.dataset, early.path);
earlyInfo.catch(() => undefined); // its error is shown where the answer is used
let isEarly = true;

function infoOf(dataset: number, path: string): Promise<Info> {
  const isAsked = isEarly && dataset === early.dataset && path === early.path;
  isEarly = false;
  return isAsked ? earlyInfo : api.info(dataset, path);
}

/** A node, and the array that is drawn for it: itself, or the finest level of an image. */
async function nodeAt(dataset: number, path: string): Promise<{ info: Info; drawn: Info }> {
  const info = await infoOf(dataset, path);
  return { info, drawn: info.draw && info.draw !== path ? await api.info(dataset, info.draw) : info };
}

function titleOf({ info }: Shown): string {
  const array = info.array;
  if (!array) return info.kind === "group" ? "Group" : "";
  return [array.title, `${array.type} ${array.shape.join(" × ") || "scalar"}`].filter(Boolean).join(" · ");
}

function Crumbs({ entry, path, onOpen }: { entry: DatasetEntry; path: string; onOpen: (dataset: number, path: string) => void }) {
  const names = path ? path.split("/") : [];
  return (
    <nav class="crumbs" aria-label="Path" title={entry.location}>
      <button class="plain" onClick={() => onOpen(entry.number, "")}>{entry.name}</button>
      {names.map((name, k) => (
        <span key={k}>
          <span class="other">{" / "}</span>
          <button class="plain" aria-current={k === names.length - 1 ? "page" : undefined} onClick={() => onOpen(entry.number, names.slice(0, k + 1).join("/"))}>
            {name}
          </button>
        </span>
      ))}
    </nav>
  );
}

const WORDS: Record<Tab, string> = { contents: "Contents", picture: "Picture", line: "Line", table: "Table", chunks: "Chunks", about: "About" };

function Tabs({ tabs, tab, title, onTab }: { tabs: Tab[]; tab: Tab; title: string; onTab: (tab: Tab) => void }) {
  const move = (event: KeyboardEvent) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    const next = tabs[tabs.indexOf(tab) + step];
    if (!step || !next) return;
    event.preventDefault();
    onTab(next);
    (event.currentTarget as HTMLElement).querySelector<HTMLElement>(`[data-tab=${next}]`)?.focus();
  };
  return (
    <div class="tabs">
      <div role="tablist" onKeyDown={move}>
        {tabs.map((name, k) => (
          <button key={name} role="tab" data-tab={name} aria-selected={name === tab} tabIndex={name === tab ? 0 : -1} title={`${WORDS[name]} (${k + 1})`} onClick={() => onTab(name)}>
            {WORDS[name]}
          </button>
        ))}
      </div>
      <span class="title">{title}</span>
    </div>
  );
}

render(<App />, document.getElementById("app")!);
