// Keys, and where to read more.
import { useLayoutEffect, useRef } from "preact/hooks";

const KEYS: [string, string][] = [
  ["/", "search"],
  ["↑ ↓ ← →", "in the hierarchy: move, fold; Enter opens, b shows beside; in a picture: move"],
  ["1 … 5", "the tabs: picture, line, table, chunks, about; of a group: contents, about"],
  ["+ −  0", "zoom; show all of it"],
  ["[  ]  p", "previous, next; play"],
  ["c  C  v", "next, previous colour map; reverse it"],
  ["r  l", "limits from the current view; logarithmic colours"],
  ["f  x  g  o", "flip; exchange the axes; chunk boundaries; coastlines"],
  ["m", "compare with the other dataset"],
  ["s", "save the picture as PNG"],
  ["t  d  ?", "hierarchy; light or dark; this list"],
];

export function Help({ version, onClose }: { version: string; onClose: () => void }) {
  const ref = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => ref.current!.showModal(), []);
  return (
    <dialog ref={ref} class="help" aria-label="Keys" onClose={onClose} onClick={(event) => event.target === ref.current && onClose()}>
      <h2>Keys</h2>
      <table class="facts">
        <tbody>
          {KEYS.map(([keys, words]) => (
            <tr key={keys}>
              <th scope="row">
                {keys.split(/ +/).map((key) => (
                  <kbd key={key}>{key}</kbd>
                ))}
              </th>
              <td>{words}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="soft">
        The address of the page contains everything you see: copy it to share the view. omnizarr {version}; <a href="LICENSES.txt">licences</a>. Coastlines: Natural Earth.
      </p>
      <button onClick={onClose}>Close</button>
    </dialog>
  );
}
