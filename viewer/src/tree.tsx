// The hierarchy: folded, read group by group, searched.
import { useEffect, useRef, useState } from "preact/hooks";
import { search, tree, type DatasetEntry, type TreeNode } from "./api.ts";

const PAGE = 100;

interface Props {
  entries: DatasetEntry[];
  current: { dataset: number; path: string };
  beside: { dataset: number; path: string } | null;
  onOpen: (dataset: number, path: string) => void;
  onBeside: (dataset: number, path: string) => void;
}

export function Sidebar(props: Props) {
  const [query, setQuery] = useState("");
  return (
    <nav class="sidebar" aria-label="Hierarchy">
      <input
        id="search"
        type="search"
        placeholder="Search arrays and groups  ( / )"
        aria-label="Search arrays and groups"
        value={query}
        onInput={(event) => setQuery(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") setQuery("");
          if (event.key === "ArrowDown") focusFirst(event.currentTarget.parentElement!);
        }}
      />
      <div class="trees" role="tree" aria-label="Arrays and groups" onKeyDown={moveFocus}>
        {props.entries.map((entry) => (query ? <Found key={entry.number} {...props} entry={entry} query={query} /> : <Branches key={entry.number} {...props} entry={entry} />))}
      </div>
    </nav>
  );
}

function focusFirst(sidebar: HTMLElement): void {
  sidebar.querySelector<HTMLElement>("[role=treeitem]")?.focus();
}

/** Up and down between all rows; right and left are each row's own business. */
function moveFocus(event: KeyboardEvent): void {
  const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: 12, PageUp: -12, Home: -Infinity, End: Infinity };
  const step = steps[event.key];
  if (step === undefined) return;
  event.preventDefault();
  const rows = [...(event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>("[role=treeitem]")];
  const now = rows.indexOf(document.activeElement as HTMLElement);
  rows[Math.max(0, Math.min(rows.length - 1, now + step))]?.focus();
}

type BranchProps = Props & { entry: DatasetEntry };

function Branches(props: BranchProps) {
  const { entry } = props;
  const root: TreeNode = { path: "", name: entry.name, kind: entry.kind };
  return <Branch {...props} node={root} depth={0} />;
}

function Branch(props: BranchProps & { node: TreeNode; depth: number }) {
  const { node, depth, entry, current } = props;
  const isWithin = current.dataset === entry.number && (node.path === "" || current.path === node.path || current.path.startsWith(`${node.path}/`));
  const [isOpen, setOpen] = useState(depth === 0 || (isWithin && current.path !== node.path));
  const [nodes, setNodes] = useState<TreeNode[] | null>(null);
  const [next, setNext] = useState(0);
  const [rest, setRest] = useState(0);
  const [error, setError] = useState<string | null>(null);

  const isReading = useRef(false);
  const more = async () => {
    if (isReading.current) return;
    isReading.current = true;
    try {
      const answer = await tree(entry.number, node.path, next, PAGE);
      setNodes([...(nodes ?? []), ...answer.nodes]);
      setNext(next + PAGE);
      setRest(Math.max(0, answer.total - next - PAGE));
      if (answer.note) setError(answer.note);
    } catch (failure) {
      setError((failure as Error).message);
    }
    isReading.current = false;
  };
  useEffect(() => {
    if (isOpen && node.kind === "group" && nodes === null) void more();
  }, [isOpen]);
  useEffect(() => {
    if (isWithin && current.path !== node.path) setOpen(true);
  }, [current.path, current.dataset]);

  return (
    <>
      <Row {...props} isOpen={node.kind === "group" ? isOpen : null} onFold={setOpen} />
      {isOpen && error && <p class="trouble small">{error}</p>}
      {isOpen && nodes?.map((child) => <Branch {...props} key={child.path} node={child} depth={depth + 1} />)}
      {isOpen && rest > 0 && <More key={next} depth={depth} rest={rest} onMore={more} />}
    </>
  );
}

/** Reads on when it is scrolled to. */
function More({ depth, rest, onMore }: { depth: number; rest: number; onMore: () => void }) {
  const ref = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    const observer = new IntersectionObserver((entries) => entries.some(({ isIntersecting }) => isIntersecting) && onMore());
    observer.observe(ref.current!);
    return () => observer.disconnect();
  }, []);
  return (
    <button ref={ref} class="more" style={{ marginLeft: `${depth + 1}em` }} onClick={onMore}>
      {rest} more …
    </button>
  );
}

function Found(props: BranchProps & { query: string }) {
  const { entry, query } = props;
  const [found, setFound] = useState<{ nodes: TreeNode[]; more: boolean } | null>(null);
  useEffect(() => {
    const controller = new AbortController();
    const timer = setTimeout(
      () => search(entry.number, query, controller.signal).then(setFound, () => setFound({ nodes: [], more: false })),
      120,
    );
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [query, entry.number]);
  return (
    <>
      {props.entries.length > 1 && <p class="in">{entry.name}</p>}
      {found?.nodes.length === 0 && <p class="in">Nothing found.</p>}
      {found?.nodes.map((node) => <Row {...props} key={node.path} node={{ ...node, name: node.path }} depth={0} isOpen={null} onFold={() => undefined} />)}
      {found?.more && <p class="in">There are more: search for a longer name.</p>}
    </>
  );
}

interface RowProps extends BranchProps {
  node: TreeNode;
  depth: number;
  /** Null: nothing to fold. */
  isOpen: boolean | null;
  onFold: (open: boolean) => void;
}

function Row({ node, depth, entry, current, beside, isOpen, onFold, onOpen, onBeside }: RowProps) {
  const ref = useRef<HTMLDivElement>(null);
  const isCurrent = current.dataset === entry.number && current.path === node.path;
  const isBeside = beside?.dataset === entry.number && beside.path === node.path;
  const open = () => onOpen(entry.number, node.path);
  const onKey = (event: KeyboardEvent) => {
    if (event.key === "Enter" || event.key === " ") open();
    else if (event.key === "ArrowRight" && isOpen === false) onFold(true);
    else if (event.key === "ArrowLeft" && isOpen) onFold(false);
    else if (event.key === "b") onBeside(entry.number, node.path);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  useEffect(() => {
    if (isCurrent) ref.current?.scrollIntoView({ block: "nearest" });
  }, [isCurrent]);
  const shape = node.shape?.join(" × ");
  return (
    <div
      ref={ref}
      role="treeitem"
      tabIndex={isCurrent ? 0 : -1}
      aria-level={depth + 1}
      aria-selected={isCurrent}
      aria-expanded={isOpen ?? undefined}
      class={`row ${node.kind} ${isCurrent ? "current" : ""} ${isBeside ? "beside" : ""}`}
      style={{ paddingLeft: `${depth * 0.95 + 0.3}em` }}
      title={node.error ?? [node.path || entry.location, node.dtype, shape].filter(Boolean).join("\n")}
      data-path={node.path}
      onClick={open}
      onKeyDown={onKey}
    >
      <span
        class="fold"
        aria-hidden="true"
        onClick={(event) => {
          event.stopPropagation();
          if (isOpen !== null) onFold(!isOpen);
        }}
      >
        {isOpen === null ? "" : isOpen ? "▾" : "▸"}
      </span>
      <span class="name">{node.name || "/"}</span>
      {shape !== undefined && <span class="shape">{shape || "scalar"}</span>}
      {node.kind === "array" && !isCurrent && (
        <button
          class="besides"
          tabIndex={-1}
          title="Show beside the current one (b)"
          aria-label={`Show ${node.path || node.name} beside the current one`}
          onClick={(event) => {
            event.stopPropagation();
            onBeside(entry.number, node.path);
          }}
        >
          ◫
        </button>
      )}
    </div>
  );
}
