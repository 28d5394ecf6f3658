"""Take a specification apart: what it requires, sentence by sentence, and the examples that it works out.

Documents are text as people write and keep it: reStructuredText, Markdown, a web page saved as text. A document is cut
into blocks (paragraphs, items of lists, code, tables), each below its heading and term; prose is cut into sentences.

A sentence *requires* if one of the words must, shall and required stands in it. An *example* is a block of code, a
table that is called one, or a sentence that says "for example" and something concrete: a number or a literal.

A sentence is known by its section and a digest of its words: a table of sentences need not repeat them.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

REQUIRES = re.compile(r"\b(must|shall|required)\b", re.IGNORECASE)
EXAMPLE = re.compile(r"(?<![\"“])\b(for example\b|an example (is|might be)\b|e\.g\.)", re.IGNORECASE)
CONCRETE = re.compile(r"""(?<!\w)\d|[\["'`]|“\w""")
REFERENCE = re.compile(r"`[^`<]+`_|<[^>]+>|\[\w*\d+\]")
END = re.compile(r"(?<!\b[eE]\.g\.)(?<!\b[iI]\.e\.)(?<=[.!?])[)\"'”’*`_]*\s+(?=[^a-z\s])")
MARKUP = re.compile(r"[`*\\“”‘’\"']|(?<!\w)_|_(?!\w)")

PAGE_HEADING = re.compile(r"(\S.{0,80})#$")
MARKDOWN_HEADING = re.compile(r"#+\s+([^{]+?)\s*(\{#\w+\})?$")
UNDERLINE = re.compile(r"([=~^-])\1{2,}$")
TERM = re.compile(r"[`*]*[\w* ]{1,40}[`*]*$")  # a name, with its definition below it
FIELD = re.compile(r"[a-z]+(_[a-z]+)*$")  # as a heading: a term of the heading above it
MARKER = re.compile(r"([*•-]|\d+\.|\.\. \w+:{1,2})\s+(?=\S)")
SILENT = re.compile(r"\.\. _[^:]+:|\.\. \w+:{1,2}|[=~^-]{3,}|<!--|-->")
TABLE = re.compile(r"\.\. list-table:: (?P<title>.*)$")


@dataclass(frozen=True, slots=True)
class Sentence:
    """What an implementation has to prove."""

    id: str
    """``section/digest``, and ``-2`` or ``-3`` where a section says it again."""
    section: str
    is_example: bool
    text: str


def find(text: str) -> list[Sentence]:
    """Return what a document requires, and what it shows by example, in its order.

    Examples
    --------
    >>> [sentence] = find("Names\\n=====\\n\\nA name is text. It must not be\\nempty, says RFC 1.")
    >>> sentence.section, sentence.text
    ('Names', 'It must not be empty, says RFC 1.')
    """
    found: list[Sentence] = []
    times: dict[str, int] = {}
    for block in blocks(text):
        for sentence in [block.text] if block.is_code else split(block.text):
            requires = not block.is_code and bool(REQUIRES.search(sentence))
            shows = EXAMPLE.search(sentence) and CONCRETE.search(REFERENCE.sub("", sentence))
            if requires or block.is_code or (shows and not block.announces_code):
                name = f"{slug(block.section)}/{digest(sentence)}"
                times[name] = times.get(name, 0) + 1
                name += f"-{times[name]}" if times[name] > 1 else ""
                found.append(Sentence(name, block.section, not requires, sentence))
    return found


def split(prose: str) -> list[str]:
    """Return the sentences of a paragraph.

    Examples
    --------
    >>> split('It is "." or "/". Others, e.g. "-", are not. (Why?) Who knows.')
    ['It is "." or "/".', 'Others, e.g. "-", are not.', '(Why?)', 'Who knows.']
    """
    ends = [0, *(end.end() for end in END.finditer(prose)), len(prose)]
    return [sentence for start, stop in pairwise(ends) if (sentence := prose[start:stop].strip())]


def digest(sentence: str) -> str:
    """Return eight digits by which a sentence is known, however it is wrapped and marked up."""
    words = " ".join(MARKUP.sub("", sentence).split()).lower()
    return hashlib.sha256(words.encode()).hexdigest()[:8]


def slug(section: str) -> str:
    """Return the name of a section as it stands in identifiers.

    Examples
    --------
    >>> slug("Array metadata, chunk_grid")
    'array-metadata-chunk_grid'
    """
    return "-".join(re.findall(r"\w+", section.lower()))


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, an item of a list, code, or the rows of a table."""

    section: str
    """The heading, and the term, above it."""
    text: str
    is_code: bool = False
    announces_code: bool = False


def blocks(text: str) -> Iterator[Block]:
    """Yield the blocks of a document in their order."""
    lines = [*text.expandtabs().splitlines(), ""]
    heading = term = ""
    term_indent, at = 0, 0
    while at < len(lines):
        line = lines[at].strip()
        section = f"{heading}, {term}" if term else heading
        code = end_of_code(lines, at)
        if not line or SILENT.fullmatch(line):
            at += 1
        elif code > at:
            yield Block(section, "\n".join(lines[at:code]), is_code=True)
            at = code
        elif TABLE.match(line):
            at = end_of_indented(lines, at)  # data: what it says is tested, and it is not an example
        elif title := read_heading(lines, at):
            at += 1
            if FIELD.match(title):
                term, term_indent = title, -1
            else:
                heading, term = title, ""
        else:
            start, (at, prose) = at, read_paragraph(lines, at)
            if term and indent_of(lines[start]) <= term_indent:
                section, term = heading, ""
            below = end_of_indented(lines, at - 1)
            if below > at and TERM.match(prose):
                term, term_indent = prose.strip("`* "), indent_of(lines[start])
                continue
            is_literal = below > at and prose.endswith("::")
            following = next((n for n in range(at, len(lines)) if lines[n].strip()), at)
            announces = is_literal or (prose.endswith(":") and end_of_code(lines, following) > following)
            yield Block(section, prose, announces_code=announces)
            if is_literal:
                yield Block(section, "\n".join(lines[at:below]), is_code=True)
                at = below


def indent_of(line: str) -> int:
    return len(line) - len(line.lstrip())


def end_of_indented(lines: list[str], start: int) -> int:
    """Return the line after those below `start` that stand further in than it."""
    stop = end = start + 1
    while stop < len(lines) and (not lines[stop].strip() or indent_of(lines[stop]) > indent_of(lines[start])):
        stop += 1
        end = stop if lines[stop - 1].strip() else end
    return end


def end_of_code(lines: list[str], at: int) -> int:
    """Return the line after the code, or the table called an example, that begins at `at`; `at` if none does."""
    line = lines[at].rstrip()
    if line.startswith("```") or line == "{":
        last = "}" if line == "{" else line
        return next((n + 1 for n in range(at + 1, len(lines)) if lines[n].rstrip() == last), at)
    if "example" not in line.lower():
        return at
    if TABLE.match(line.strip()):
        return end_of_indented(lines, at)
    end = at = at + 1
    if not PAGE_HEADING.match(line):
        return at - 1
    while at < len(lines) and len(lines[at]) <= 80 and lines[at] != "Note" and not read_heading(lines, at):
        at += 1
        end = at if lines[at - 1].strip() else end
    return end


def read_heading(lines: list[str], at: int) -> str | None:
    line = lines[at]
    if heading := MARKDOWN_HEADING.match(line) or PAGE_HEADING.match(line):
        return heading[1]
    below = lines[at + 1] if at + 1 < len(lines) else ""
    is_title = line[:1].strip() and not UNDERLINE.match(line) and UNDERLINE.match(below)
    return line if is_title and len(below) >= len(line) - 2 else None


def read_paragraph(lines: list[str], at: int) -> tuple[int, str]:
    """Return the line after the paragraph or item that begins at `at`, and its text in one line."""
    first, indents = lines[at].strip(), {indent_of(lines[at])}
    if marker := MARKER.match(first):
        indents |= {indent_of(lines[at]) + (3 if first.startswith("..") else marker.end())}
        first = first[marker.end() :]
    words = [first]
    at += 1
    while (line := lines[at].strip()) and indent_of(lines[at]) in indents:
        is_new = MARKER.match(line) or SILENT.fullmatch(line) or line.startswith("|") != first.startswith("|")
        if is_new or read_heading(lines, at) or end_of_code(lines, at) > at:
            break
        words.append(line)
        at += 1
    return at, re.sub(r"<!--.*?-->", "", " ".join(words))
