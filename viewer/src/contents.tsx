// The members of a group as a table. Only rows on the screen are there, and only their pages and pictures are read.
import type * as preact from "preact";
import { useEffect, useLayoutEffect, useReducer, useRef, useState } from "preact/hooks";
import { members, smallPicture, type Info, type Member } from "./api.ts";
import { FRESH, START, toHash } from "./look.ts";
import { bytes, Trouble, Waiting } from "./parts.tsx";

const PAGE = 100;
const ROW = 54;
/** Browsers draw nothing that is taller than some tens of millions of pixels. */
const TALLEST = 8_000_000;
/** Rows above and below those on the screen. */
const BEYOND = 4;

interface Props {
  dataset: number;
  info: Info;
  onOpen: (path: string) => void;
}

/** The pages of a group that were asked for, and their rows. */
class Pages {
  total: number | null = null;
  note: string | null = null;
  error: string | null = null;
  #rows = new Map<number, Member[] | null>();
  #place: [number, string];
  #listener: () => void;

  constructor(dataset: number, path: string, listener: () => void) {
    this.#place = [dataset, path];
    this.#listener = listener;
  }

  row(index: number): Member | undefined {
    return this.#rows.get(Math.floor(index / PAGE))?.[index % PAGE];
  }

  /** Ask for the pages of some rows, unless they were asked for before. */
  want(first: number, last: number): void {
    for (let page = Math.floor(first / PAGE); page * PAGE <= last; page++) if (!this.#rows.has(page)) void this.#load(page);
  }

  async #load(page: number): Promise<void> {
    this.#rows.set(page, null);
    try {
      const answer = await members(...this.#place, page * PAGE, PAGE);
      // Names that are no nodes keep their places between pages; in a single page there is none to keep.
      const rows = answer.next === null && page === 0 ? answer.nodes.filter(({ kind }) => kind !== "nothing") : answer.nodes;
      this.#rows.set(page, rows);
      this.total = rows === answer.nodes ? answer.total : rows.length;
      this.note = answer.note ?? null;
      this.error = null;
    } catch (failure) {
      this.error = (failure as Error).message;
    }
    this.#listener();
  }

  retry(): void {
    this.error = null;
    for (const [page, rows] of this.#rows) if (rows === null) this.#rows.delete(page);
    this.#listener();
  }
}

export function Contents({ dataset, info, onOpen }: Props) {
  const [, redraw] = useReducer((turn: number) => turn + 1, 0);
  const [pages] = useState(() => new Pages(dataset, info.path, () => redraw(0)));
  const box = useRef<HTMLDivElement>(null);
  const [seen, setSeen] = useState<[number, number]>([0, 0]);
  const total = pages.total ?? 0;
  // Of very many rows, one step of the scrollbar is several rows.
  const height = Math.min(TALLEST, total * ROW);

  const look = () => {
    const { scrollTop, clientHeight } = box.current!;
    const count = Math.ceil(clientHeight / ROW);
    const part = scrollTop / Math.max(1, height - clientHeight);
    const first = height === total * ROW ? Math.floor(scrollTop / ROW) : Math.round(part * Math.max(0, total - count));
    setSeen((old) => (old[0] === first && old[1] === first + count ? old : [first, first + count]));
  };
  useLayoutEffect(() => {
    const observer = new ResizeObserver(look);
    observer.observe(box.current!);
    look();
    return () => observer.disconnect();
  }, [total]);
  const [first, last] = [Math.max(0, seen[0] - BEYOND), Math.min(total - 1, seen[1] + BEYOND)];
  useEffect(() => {
    // While the table is scrolled fast, the rows in between are not asked for.
    const timer = setTimeout(() => pages.want(first, Math.max(first, last)), pages.total === null ? 0 : 60);
    return () => clearTimeout(timer);
  }, [first, last, pages.error]);
  useEffect(() => {
    if (pages.total !== null) performance.mark("table");
  }, [pages.total]);

  const top = height === total * ROW ? first * ROW : (box.current?.scrollTop ?? 0) - (seen[0] - first) * ROW;
  const indices = Array.from({ length: Math.max(0, last - first + 1) }, (_, k) => first + k);
  return (
    <div class="contents">
      <Words info={info} />
      {info.plate && <Plate dataset={dataset} plate={info.plate} onOpen={onOpen} />}
      {pages.note && <p class="note">{pages.note}</p>}
      {pages.error && <Trouble message={pages.error} again={() => pages.retry()} />}
      {pages.total === null && !pages.error && <Waiting what="the members of the group" />}
      {pages.total === 0 && <p class="waiting">There is nothing in this group.</p>}
      <div class="scroll" ref={box} onScroll={look} role="table" aria-label="Members of the group" aria-rowcount={total + 1} tabIndex={0} hidden={total === 0}>
        <div class="member head" role="row" aria-rowindex={1}>
          {["", `Name (${total})`, "Dimensions", "Type", "Units", "Size"].map((name) => (
            <span role="columnheader" key={name}>
              {name}
            </span>
          ))}
        </div>
        <div class="members" style={{ height: `${height}px` }}>
          <div class="window" style={{ transform: `translateY(${top}px)` }}>
            {indices.map((index) => (
              <MemberRow key={index} index={index} dataset={dataset} member={pages.row(index)} onOpen={onOpen} />
            ))}
          </div>
        </div>
      </div>
    </div>
  );
}

/** Up to two texts among the attributes of the group: its title, and what describes it. */
function Words({ info }: { info: Info }) {
  const said = ["title", "long_name", "summary", "description", "institution"].map((name) => info.attributes[name]);
  const words = said.filter((text): text is string => typeof text === "string" && text !== "").slice(0, 2);
  if (words.length === 0) return null;
  return (
    <div class="words">
      {words.map((text, k) => (k ? <p class="soft" key={k}>{text}</p> : <h2 key={k}>{text}</h2>))}
    </div>
  );
}

/** The wells of a plate where they lie, each with a small picture of its first field. */
function Plate({ dataset, plate, onOpen }: { dataset: number; plate: NonNullable<Info["plate"]>; onOpen: (path: string) => void }) {
  const { rows, columns, wells } = plate;
  const at = new Map(wells.map((well) => [`${well.row},${well.column}`, well]));
  return (
    <div class="plate" tabIndex={0} role="grid" aria-label={`Plate of ${rows.length} × ${columns.length} wells, of which ${wells.length} are there`}>
      <div class="wells" style={{ gridTemplateColumns: `auto repeat(${columns.length}, minmax(64px, 96px))` }}>
        <span />
        {columns.map((name) => (
          <b key={name}>{name}</b>
        ))}
        {rows.map((name, row) => (
          <>
            <b key={name}>{name}</b>
            {columns.map((other, column) => {
              const well = at.get(`${row},${column}`);
              if (!well) return <span class="well none" key={other} title={`${name}${other}: no well`} />;
              return (
                <button class="well" key={other} data-path={well.path} title={`Well ${name}${other}`} aria-label={`Well ${name}${other}`} onClick={() => onOpen(well.path)}>
                  <Seen>{() => <Small dataset={dataset} path={well.path} />}</Seen>
                </button>
              );
            })}
          </>
        ))}
      </div>
    </div>
  );
}

/** What is drawn only once it was on the screen: a plate can have 1536 wells. */
function Seen({ children }: { children: () => preact.ComponentChild }) {
  const [isSeen, setSeen] = useState(false);
  const box = useRef<HTMLSpanElement>(null);
  useEffect(() => {
    const observer = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && setSeen(true));
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);
  return (
    <span class="seen" ref={box}>
      {isSeen && children()}
    </span>
  );
}

interface RowProps {
  index: number;
  dataset: number;
  member: Member | undefined;
  onOpen: (path: string) => void;
}

function MemberRow({ index, dataset, member, onOpen }: RowProps) {
  if (!member) return <div class="member absent" role="row" aria-rowindex={index + 2} />;
  const { kind, name, path } = member;
  const isNode = kind !== "nothing";
  const cells = [member.dtype, member.units, kind === "array" ? bytes(member.size) : ""];
  return (
    <div class={`member ${kind}`} role="row" aria-rowindex={index + 2} data-path={path} title={member.error} onClick={isNode ? () => onOpen(path) : undefined}>
      <span role="cell">{member.is_picture && <Small key={path} dataset={dataset} path={path} />}</span>
      <span role="cell" class="named">
        {isNode ? (
          <a
            href={`#${toHash({ ...START, ...FRESH, dataset, path })}`}
            onClick={(event) => {
              event.stopPropagation();
              if (event.ctrlKey || event.metaKey || event.shiftKey) return;
              event.preventDefault();
              onOpen(path);
            }}
          >
            {name}
            {kind === "group" && "/"}
          </a>
        ) : (
          name
        )}
        <small>{member.error ?? member.title ?? (isNode ? (kind === "group" ? "group" : "") : "no node")}</small>
      </span>
      <span role="cell" class="sizes">
        <Sizes member={member} />
      </span>
      {cells.map((text, k) => (
        <span role="cell" key={k}>
          {text}
        </span>
      ))}
    </div>
  );
}

function Sizes({ member: { shape, dimensions } }: { member: Member }) {
  if (!shape) return null;
  if (shape.length === 0) return <>scalar</>;
  return (
    <>
      {shape.map((size, k) => (
        <span class="side" key={k}>
          {k > 0 && " × "}
          {dimensions?.[k] && <i>{dimensions[k]} </i>}
          {size}
        </span>
      ))}
    </>
  );
}

// --- small pictures --------------------------------------------------------------------------------------------------

const AT_ONCE = 3;
interface Drawn {
  address: string;
  note: string;
}

/** Pictures that were read, by dataset and path; null: there is none. */
const drawn = new Map<string, Drawn | null>();
const MOST_DRAWN = 2000;
let running = 0;
const queue = new Set<() => void>();

/** Do something when few others of its kind are being done; the answer withdraws it. */
function whenFree(start: () => Promise<void>): () => void {
  const next = () => {
    for (const first of queue) {
      if (running >= AT_ONCE) return;
      queue.delete(first);
      first();
    }
  };
  const begin = () => {
    running++;
    void start().finally(() => {
      running--;
      next();
    });
  };
  queue.add(begin);
  next();
  return () => queue.delete(begin);
}

function Small({ dataset, path }: { dataset: number; path: string }) {
  const key = `${dataset}:${path}`;
  const [found, setFound] = useState(drawn.get(key));
  useEffect(() => {
    if (drawn.has(key)) return;
    const controller = new AbortController();
    const withdraw = whenFree(async () => {
      try {
        const small = await smallPicture(dataset, path, controller.signal);
        keep(key, small && { address: URL.createObjectURL(small.picture), note: small.note });
        setFound(drawn.get(key));
      } catch {
        if (!controller.signal.aborted) setFound(null); // what is wrong is said where the array is opened
      }
    });
    return () => {
      withdraw();
      controller.abort();
    };
  }, [key]);
  return found ? <img src={found.address} alt={found.note} title={found.note} /> : <span class={found === undefined ? "small waits" : "small"} />;
}

function keep(key: string, found: Drawn | null): void {
  drawn.set(key, found);
  for (const [old, one] of drawn) {
    if (drawn.size <= MOST_DRAWN) break;
    drawn.delete(old);
    if (one) URL.revokeObjectURL(one.address);
  }
}
