"""The kinds of findings: one table that says all that is known of each.

A check takes severity, meaning and remedy from it; a repair, what is mended, and when; and the manual its tables
(`python -m tests.tables`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

Part: TypeAlias = Literal["document", "missing", "copied", "consolidated", "key", "chunk", "leftover"]
"""What of a hierarchy a repair changes, and so which module of `omnizarr.tools.repairing` does it."""


class Mend(NamedTuple):
    """How findings of one kind are mended.

    Attributes
    ----------
    part : str
        What is changed.
    done : str
        What is done, for the manual.
    why : str
        Why that is certain; if it must be asked for, why so.
    asked : bool
        Whether it is done only if the code is named (`codes=`, `--only`).
    guesses : bool
        Whether it may not be possible without guessing, or gives something up. Such findings do not count as
        repairable.
    decodes : bool
        Whether it is found only by decoding chunks (`data=`, `--data`).
    """

    part: Part
    done: str
    why: str
    asked: bool = False
    guesses: bool = False
    decodes: bool = False


class Code(NamedTuple):
    """What is known of all findings of one kind.

    Attributes
    ----------
    code : str
        The name of the kind, which stays.
    severity, meaning, remedy : str
        How bad it is, what it means, and what to do.
    mend : Mend or None
        How it is mended; None if no program can.
    raised_if_strict : bool
        Whether it is a note that a strict check takes for a warning.
    """

    code: str
    severity: Literal["error", "warning", "note"]
    meaning: str
    remedy: str
    mend: Mend | None = None
    raised_if_strict: bool = False


_REWRITE: Final = "spell it as the text does"
_RESTORE: Final = "restore it from a copy, or write it again"

SECTIONS: Final[Mapping[str, tuple[Code, ...]]] = {
    "Documents as JSON": (
        Code("not-json", "error", "a document is no JSON, is empty, or is nested without end", _RESTORE),
        Code("not-utf8", "error", "a document is not in UTF-8", _RESTORE),
        Code("repeated-member", "error", "an object in a document has two members of one name", "delete the wrong one",
             Mend("document", "the member is left out where it is there again",
                  "only if both say the same; otherwise it is left", guesses=True)),
        Code("bare-nan", "warning", "NaN or Infinity stand outside of attributes, as JSON does not allow",
             'quote them: "NaN"',
             Mend("document", "the token is put in quotes",
                  "in fill values and configurations the string means the same (in attributes it would not, so those "
                  "are left)")),
        Code("nonfinite-attribute", "note",
             "NaN or Infinity in an attribute, for which strict readers of JSON refuse the document",
             'if those shall read it: set it anew with omnizarr.config.set({"attributes.nonfinite": "string"})',
             raised_if_strict=True),
        Code("byte-order-mark", "warning", "a document begins with a byte order mark", "delete its first three bytes",
             Mend("document", "the mark is left out", "it says nothing in UTF-8")),
    ),
    "Documents as metadata": (
        Code("missing-member", "error", "a required member is missing", _RESTORE),
        Code("unknown-member", "error", "a member that no text defines, and that may not be ignored", "delete it"),
        Code("wrong-zarr-format", "error", "zarr_format is not that of the document", _RESTORE),
        Code("invalid-fill-value", "error", "the fill value is no value of the data type", "correct it"),
        Code("invalid-metadata", "error", "a document breaks its format otherwise", "correct it"),
        Code("unusable-codecs", "error", "codecs that cannot be combined or configured so",
             "correct the list of codecs"),
        Code("extra-member", "note", "a member that no text defines, passed over by readers",
             "move it to the attributes"),
        Code("tolerated-spelling", "note", "spelled otherwise than the text has it, and understood", _REWRITE),
    ),
    "Against the letter, though understood": (
        Code("integer-with-fraction", "warning",
             "an integer written as 0.0 or 1e2, in a fill value or a parameter; zarrs fails", _REWRITE,
             Mend("document", "`1e2` becomes `100`", "it is the same number")),
        Code("infinity-spelling", "warning", "+Infinity, as the draft of 2020 has it, in v2 or v3; most readers fail",
             _REWRITE,
             Mend("document", '`"Infinity"`', "it is the same number")),
        Code("loose-fill-value", "warning",
             "a fill value of another kind than its data type: a number for text, bytes, records or booleans; most "
             "readers fail", _REWRITE,
             Mend("document", "the value as the text spells it for the data type",
                  "readers that go on take it so. A NaN of other bits is left: v2 has no word for it")),
        Code("raw-bits-as-text", "warning",
             "the fill value of raw bits in base64, or a number, where the text has a list: TensorStore reads base64 "
             "alone", "spell it as the text does, unless TensorStore is to read it"),
        Code("legacy-struct", "warning",
             "a struct with fields as pairs, or its fill value in base64, as structured had them", _REWRITE,
             Mend("document", "objects in place of pairs and base64", "they say the same")),
        Code("missing-parameter", "warning",
             "a required parameter of a codec or data type is missing; most readers fail", "add it",
             Mend("document",
                  "what is taken where it is missing: what omnizarr writes chunks with; 1 for `scale_factor`",
                  "chunks are decoded without it. What decoding needs, such as the `dtype` of `delta`, is left")),
        Code("invalid-typesize", "warning", "blosc with a typesize that is not from 1 to 255; most readers fail",
             "name the item size",
             Mend("document", "the item size; 1 beyond 255 bytes, as C-Blosc takes it",
                  "chunks are decoded without it")),
        Code("shuffle-of-other-format", "warning",
             "blosc with shuffle as a number in v3, or as a word in v2; most readers fail", _REWRITE,
             Mend("document", "the word, or the number", "they mean the same")),
        Code("time-without-unit", "warning", "a date or duration without a unit in Zarr v2; zarr-python fails",
             "find out the unit, and add it"),
        Code("short-name", "note",
             "a bare name in place of an object, as the text allows since 3.1; TensorStore and zarr-python fail",
             'write {"name": ...}',
             Mend("document", '`{"name": ...}`', "the text says that it means the same")),
    ),
    "Conventions": (
        Code("array-dimensions", "warning",
             "_ARRAY_DIMENSIONS has not one name per dimension; xarray refuses the whole group",
             "correct the attribute"),
        Code("mask-of-another-type", "warning", "the attribute _FillValue is no value of the data type",
             "correct the attribute"),
        Code("mask-unreadable", "warning",
             "the attribute _FillValue of a v3 array is not in the form that xarray reads; xarray refuses the whole "
             "group", "write the form that is expected"),
        Code("coordinate-length", "warning",
             "a dimension is longer or shorter than the coordinate of its name; xarray refuses the whole group",
             "resize one of the two arrays"),
        Code("anndata-missing-node", "warning", "a node is missing that attributes of anndata speak of",
             "restore the node, or correct the attribute"),
        Code("crs-unreadable", "warning", "the attribute _CRS has no form that GDAL reads",
             "write it with a member wkt, projjson or url"),
        Code("ome-wrong-form", "warning",
             "OME-Zarr 0.4 in Zarr v3, or 0.5 in v2, where most readers do not look for it",
             "convert from the other Zarr format, or move them"),
        Code("ome-both-forms", "warning",
             "OME-Zarr's metadata lie both in the attribute ome and outside of it, and readers choose either",
             "delete those that are out of date"),
        Code("ome-version", "warning", "the version of OME-Zarr is missing, or is not that of the form or of the group",
             "correct the version"),
        Code("ome-unknown-version", "note",
             "a version of OME-Zarr that is not known here: only the paths of its levels and groups were looked at",
             "none needed"),
        Code("ome-invalid", "error", "OME-Zarr's metadata lack something that they must have, or it is of another type",
             "correct the attributes"),
        Code("ome-axes", "error", "axes of an image that OME-Zarr does not allow: their number, names, types or order",
             "correct the axes"),
        Code("ome-axes-count", "error", "an image has more or fewer axes than the arrays of its levels have dimensions",
             "correct the axes"),
        Code("ome-transformations", "error",
             "coordinateTransformations that are not a scale and at most one translation, with a number for each axis",
             "correct the transformations"),
        Code("ome-missing-level", "error", "a level of an image has no array that can be read",
             "restore the array, or take the level from the list"),
        Code("ome-missing-group", "warning",
             "a label, well, field or series is listed, and there is none that can be read",
             "restore the group, or take it from the list"),
        Code("ome-level-order", "warning", "a level of an image is larger than the one before",
             "list the levels by size, the largest first"),
        Code("ome-dimension-names", "warning",
             "the dimensions of a level are not named like the axes, as OME-Zarr 0.5 requires",
             "write dimension_names"),
        Code("ome-separator", "warning",
             "chunks of a level are not in directories, as OME-Zarr has them from 0.2 to 0.4; some readers find none",
             "convert the image to another place"),
        Code("ome-label-type", "warning", "the pixels of a label image are no integers", "store integers"),
    ),
    "Extensions": (
        Code("unknown-extension", "error", "a codec, type, grid, key encoding or transformer unknown to omnizarr",
             "install a package that provides it"),
        Code("optional-extension", "note", "an extension unknown to omnizarr, which it need not know", "none needed"),
        Code("unregistered-extension", "note", "a name that works here but is not in the registry of zarr-extensions",
             "re-encode with registered codecs if others shall read it", raised_if_strict=True),
        Code("private-extension", "error", "a name that omnizarr keeps for itself", "correct the document"),
        Code("extension-alias", "note", "another name of a registered extension", "use the registered name"),
        Code("missing-package", "note", "an optional package is needed to read the chunks", "install it"),
        Code("pickled-objects", "note", "chunks are pickles, and were not decoded: that can run any code",
             "convert them to strings or JSON"),
    ),
    "Nodes in their hierarchy": (
        Code("array-and-group", "error", "one node has the documents of an array and of a group",
             "delete the wrong one"),
        Code("two-formats", "note", "documents of two formats lie at one node, and agree",
             "zarr_format= tells which to open"),
        Code("formats-disagree", "warning", "documents of two formats lie at one node, and describe different nodes",
             "delete those that are out of date"),
        Code("mixed-formats", "warning",
             "a node of one format below a group of another, in which others do not find it", "convert one of them"),
        Code("missing-group", "warning", "a group has no document, though nodes lie below it", "create the group",
             Mend("missing", "the document of a group without attributes",
                  "a group above and nodes below say that there is one")),
        Code("missing-root", "note", "the root has no document, only nodes below it", "create a group at the root",
             Mend("missing", "the document of a group without attributes; the groups between get documents as well",
                  "only you know whether all that lies below belongs together", asked=True)),
        Code("attributes-without-node", "warning", "attributes lie where no document says that there is a node",
             "restore the document of the node, or delete the attributes"),
        Code("attributes-missing", "warning", "the document of the attributes is required, and missing",
             "write an empty one: {}",
             Mend("missing", "`{}`", "there are none")),
        Code("node-below-array", "error", "a node below an array, where there can be none", "move it elsewhere"),
        Code("only-consolidated", "warning", "only consolidated metadata speaks of a node, which has no document",
             "write the documents that it holds",
             Mend("copied", "the documents are written as their copies say",
                  "nothing else speaks of the nodes; what is there is not replaced")),
        Code("lost-entry-point", "error", "documents of a draft of v3 without the entry point of their hierarchy",
             "restore zarr.json at the root of the hierarchy"),
    ),
    "Names": (
        Code("invalid-node-name", "error", "a node has a name that its format forbids", "rename it"),
        Code("reserved-node-name", "warning",
             "a name that begins with __, which Zarr v3 reserves: xarray writes such names, zarrs does not open them",
             "rename it if zarrs is to read it"),
        Code("unreachable-node", "error",
             "a directory that the store has no keys for, by its name or as a link out of the store: it cannot be read",
             "rename it, or open it as a store of its own"),
        Code("names-differ-by-case", "warning", "siblings whose names differ only by case: one on many file systems",
             "rename one of them"),
        Code("names-look-alike", "warning", "siblings whose names are the same text in Unicode", "rename one of them"),
        Code("name-not-normalized", "note", "a name is not in Unicode's form NFC: some file systems change it",
             "rename the node"),
    ),
    "Consolidated metadata": (
        Code("stale-consolidated-metadata", "error",
             "a copy in consolidated metadata does not say what the document says", "run omnizarr.consolidate_metadata",
             Mend("consolidated", "the copies are made again",
                  "they are copies; so they are, too, when what they copy was corrected")),
        Code("broken-consolidated-metadata", "error", "consolidated metadata cannot be read",
             "run omnizarr.consolidate_metadata",
             Mend("consolidated", "the copies are made again", "they are copies; not while a document is broken")),
        Code("unknown-consolidated-metadata", "warning", "consolidated metadata is of a form unknown to omnizarr",
             "run omnizarr.consolidate_metadata",
             Mend("consolidated", "the copies are made again, in the form that is known",
                  "the copies may be of a form that is newer than this program", asked=True)),
    ),
    "Keys": (
        Code("chunk-beyond-grid", "warning",
             "a chunk lies beyond the array's shape, where other programs would show it if the array grows",
             "delete it, unless the shape is wrong",
             Mend("chunk", "the chunk is deleted", "other programs show the values if the array grows", asked=True,
                  guesses=True)),
        Code("misspelt-chunk-key", "error", "a chunk whose key has superfluous zeros or signs, which is never read",
             "rename it"),
        Code("foreign-chunk-key", "error",
             "a chunk under a key of another encoding or separator, which is never read",
             "rename it, or correct the document"),
        Code("orphan-chunks", "error", "chunks without an array", "restore the document of the array, or delete them"),
        Code("stray-key", "warning", "something in an array that is neither chunk nor document", "move it elsewhere"),
        Code("unfinished-conversion", "error",
             "a conversion to this place was interrupted, so that nodes may be missing",
             "continue it with the same command and --resume, or begin anew with --overwrite"),
        Code("foreign-file", "note", "something that is no part of the hierarchy", "none needed"),
        Code("system-file", "note", "a file that an operating system left", "delete it",
             Mend("leftover", "deleted", "it is harmless", asked=True, guesses=True)),
        Code("temporary-file", "warning", "what a writer left that was killed or is still at work",
             "delete it if no program is writing",
             Mend("leftover", "deleted", "it is an hour old (`older_than=`), and it is not locked")),
        Code("lock-file", "note", "a lock that a writer left that was killed or is still at work",
             "delete it if no program is writing",
             Mend("leftover", "deleted",
                  "it is an hour old (`older_than=`), it is not locked, and it is empty")),
    ),
    "Chunks": (
        Code("missing-chunks", "note", "chunks are not stored, and read as the fill value",
             "none needed, if so intended"),
        Code("undefined-chunks", "warning", "chunks are not stored, and nothing says what they hold",
             "give the array a fill value, or write them"),
        Code("empty-chunk", "error", "a stored chunk has no bytes", _RESTORE,
             Mend("chunk", "the chunk is deleted",
                  "a missing chunk reads as the fill value, where there is an error now", asked=True, guesses=True)),
        Code("wrong-chunk-size", "error", "a chunk has more or fewer bytes than its shape takes", _RESTORE,
             Mend("chunk", "the chunk is deleted",
                  "what is left of the chunk would go, and the fill value be read instead", asked=True, guesses=True)),
        Code("undecodable-chunk", "error", "a chunk cannot be decoded: torn, or of another codec", _RESTORE,
             Mend("chunk", "the chunk is deleted",
                  "what is left of the chunk would go, and the fill value be read instead", asked=True, guesses=True,
                  decodes=True)),
        Code("checksum-mismatch", "error", "a checksum is not that of the data", _RESTORE,
             Mend("chunk", "the chunk is deleted",
                  "the values would go, perhaps for one wrong bit, and the fill value be read instead", asked=True,
                  guesses=True, decodes=True)),
        Code("legacy-zstd", "warning", "a chunk with Zstandard of before its format was settled: zarr 1.1; others fail",
             "write it again with another compressor"),
        Code("trailing-bytes", "warning", "bytes follow the compressed data, and are not read",
             "write the chunk again"),
        Code("shard-index-broken", "error", "the index of a shard cannot be read: the shard is torn", _RESTORE),
        Code("shard-tail-torn", "error",
             "the end of a shard is torn, but it was whole before something was added to it", "cut off what was added",
             Mend("chunk", "what follows the last whole index is cut off",
                  "its checksum is right, all it points to lies before it, and each inner chunk can be decoded",
                  decodes=True)),
        Code("shard-index-outside", "error", "the index of a shard points outside it", _RESTORE,
             Mend("chunk", "the inner chunks that lie outside are entered as missing",
                  "lost inner chunks would be read as the fill value, where there is an error now", asked=True,
                  guesses=True, decodes=True)),
        Code("shard-overlap", "warning", "inner chunks of a shard overlap", "write the shard again"),
        Code("unlisted-store", "note", "the server cannot list its keys: only what documents name was checked",
             "check it where it can be listed; data=True asks for each chunk"),
        Code("unreadable-key", "error", "the store cannot read a value", "look at the store's own message"),
    ),
    "Digests": (
        Code("digest-mismatch", "error", "values or meaning are not those of which the digest was made", _RESTORE),
        Code("digest-missing", "error", "there is a digest of a node, but no node", _RESTORE),
        Code("digest-unlisted", "error", "there is a node, but no digest of it", "make the digests anew, or remove it"),
    ),
    "Known mistakes of writers": (
        Code("missing-filters", "warning", "no filters member: netCDF-C, old zarrs; some readers fail", _REWRITE,
             Mend("document", '`"filters": null`', "all readers that go on take it so")),
        Code("empty-filters", "note", "filters is [] where the text has null: zarrs, zarr-python", _REWRITE,
             Mend("document", "`[]` becomes `null`", "there are no filters")),
        Code("null-separator", "warning", "dimension_separator is null; some readers fail", _REWRITE,
             Mend("document", "the member is left out", "the separator is then `.`")),
        Code("undeclared-separator", "warning",
             "chunks nested in directories without dimension_separator: zarr-python before 2.8; most readers find no "
             "chunk, and show the fill value", 'add "dimension_separator": "/"',
             Mend("document", '`"dimension_separator": "/"`', "all chunks lie so; if some have dots it is left")),
        Code("numbers-as-strings", "warning",
             "parameters of codecs as strings: netCDF-C before 4.10; most readers fail", _REWRITE,
             Mend("document", '`"3"` becomes `3`', "the parameter is a number")),
        Code("shuffle-word", "warning", "blosc with shuffle as a word in capitals: GDAL before 3.8; most readers fail",
             _REWRITE,
             Mend("document", '`"BYTE"` becomes `1`',
                  "GDAL means that by it, and Blosc says itself how it is shuffled")),
        Code("fill-value-as-string", "warning",
             "an integer fill value as a string: GDAL, for large integers; others fail", _REWRITE,
             Mend("document", '`"3"` becomes `3`', "the type is one of integers")),
        Code("zero-elementsize", "warning",
             "shuffle with elementsize 0, meaning the item size: netCDF-C; others read wrong values or fail", _REWRITE,
             Mend("document", "the item size is written", "netCDF-C means that by 0")),
        Code("missing-elementsize", "warning",
             "shuffle without elementsize: the item size in Zarr v3, as netCDF-C writes it, 4 in v2; some readers "
             "differ", _REWRITE,
             Mend("document", "the item size is written; 4 in Zarr v2",
                  "netCDF-C and zarr-python mean that in v3, numcodecs in v2")),
        Code("netcdf-byte-order", "error",
             "big-endian by its dtype, but stored little-endian: netCDF-C 4.8.0 to 4.9.2; readers get wrong numbers",
             "give the dtype the other byte order, after a look at the values"),
        Code("nczarr-repaired", "warning",
             "what netCDF-C says of netCDF is broken, or means otherwise than it says; omnizarr.netcdf reads it right",
             "copy it with omnizarr.netcdf, which writes what is meant"),
        Code("netcdf-short-fill", "note",
             "netCDF's default fill value of double with six digits: all versions of netCDF-C; as Zarr another number",
             "none needed"),
        Code("nczarr-members", "note", "members of NCZarr in .zarray or .zgroup: netCDF-C before 4.9.3", "none needed"),
        Code("byte-order-of-bytes", "warning", "a type of single bytes with a byte order: netCDF-C; some readers fail",
             _REWRITE,
             Mend("document", "`<u1` becomes `|u1`", "single bytes have no order")),
        Code("missing-byte-order", "warning", "a type without a byte order character: xtensor-zarr; some readers fail",
             _REWRITE,
             Mend("document", "`u1` becomes `|u1`", "single bytes have no order")),
        Code("bare-type-name", "note", "a type by its name, as TensorStore has it; others do not know it",
             "none needed"),
        Code("fixed-width-strings", "warning",
             "a fixed-width dtype of text stored by a codec of variable width: zarr-python 3.0; others fail", _REWRITE,
             Mend("document", "the dtype becomes `|O`", "the filter tells how the strings are stored")),
        Code("objects-without-codec", "error", "Python objects without a codec for them: no chunk can be read",
             "find out how they were written, and add the filter"),
        Code("null-fill-value", "warning", "fill_value is null in Zarr v3: zarrita.js, NCZarr; some readers fail",
             _REWRITE,
             Mend("document", "the default of the data type", "readers take that")),
        Code("empty-fill-value", "warning", 'fill_value is "" for numbers: NCZarr; most readers fail', _REWRITE,
             Mend("document", "the default of the data type", "readers take that")),
        Code("fill-value-kind", "warning",
             "a fill value of another kind of JSON than the data type has, such as 0 for false; most readers fail",
             _REWRITE,
             Mend("document", "`0` becomes `false`", "zarr-python reads it so")),
        Code("null-member", "warning",
             "null in place of a member that is not there: zarrita of 2023; some readers fail", _REWRITE,
             Mend("document", "the member is left out", "that is what null means")),
        Code("endian-codec", "warning", "codec endian, the name of bytes until August 2023; most readers fail",
             _REWRITE,
             Mend("document", "`bytes`", "the codec was renamed in August 2023")),
        Code("missing-endian", "warning",
             "bytes without endian for items of several bytes: zarr-python; some readers fail", _REWRITE,
             Mend("document", '`"endian": "little"`', "writers that left it out wrote so")),
        Code("missing-codecs", "warning",
             "no member codecs, though v3 requires it: GDAL, for chunks without compression; most readers fail",
             _REWRITE,
             Mend("document", "little-endian `bytes`", "GDAL reads its own chunks so")),
        Code("codec-id", "warning",
             "the id of a codec in its configuration: zarr-python 3.0 with numcodecs 0.14; most readers fail", _REWRITE,
             Mend("document", "the id is left out", "the name of the codec says the same")),
        Code("empty-codecs", "warning", "no codec at all: zarrita of 2023, zarrita.js; most readers fail", _REWRITE,
             Mend("document", "little-endian `bytes`", "the text of June 2023 says so")),
        Code("missing-serializer", "warning", "no array to bytes codec: zarrita of June 2023; most readers fail",
             _REWRITE,
             Mend("document", "little-endian `bytes` before the compressors", "the text of June 2023 says so")),
        Code("transpose-letter", "warning",
             "transpose with order C or F instead of axes: zarrita of 2023; most readers fail", _REWRITE,
             Mend("document", "the list of axes", "`F` is their reversal")),
        Code("missing-index-codecs", "warning", "a shard without index_codecs: text of June 2023; most readers fail",
             _REWRITE,
             Mend("document", "little-endian `bytes`, `crc32c`", "the text of June 2023 says so")),
        Code("zero-chunk-length", "note", "chunk length 0 of a dimension without elements; some readers fail", _REWRITE,
             Mend("document", "1", "the dimension has no elements")),
        Code("codec-uri", "warning", "a codec's URI without its name: zarr-python before 2.17; even that fails",
             _REWRITE,
             Mend("document", "the URI with the name of the codec", "its parameters are those of no other")),
        Code("hidden-filters", "warning",
             "filters among the attributes: zarr-python's 2020 draft; others read wrong values",
             "convert the array to another format"),
        Code("draft-scalar-key", "note", "the chunk of a scalar under c0 instead of c: zarr-python, GDAL", "rename it",
             Mend("key", "the chunk gets the key `c`",
                  "zarr-python and GDAL do not find the chunk under the key of the text", asked=True)),
        Code("order-not-stored", "warning", "order F, but bytes in order C: zarr 1, where the codec is not blosc",
             "convert the array to another format"),
        Code("gzip-is-zlib", "note", "gzip, by which zarr 1 meant a zlib stream", "none needed"),
        Code("titled-field", "warning", "a field with a title or shape, which zarr 1 wrote and cannot read",
             "convert the array to another format"),
    ),
}  # fmt: skip
"""All kinds of findings, by the section of the manual."""

CODES: Final[Mapping[str, Code]] = {row.code: row for rows in SECTIONS.values() for row in rows}

MENDS: Final[Mapping[str, Mend]] = {code: row.mend for code, row in CODES.items() if row.mend is not None}
"""How a repair mends each kind that it can mend."""

RAISED_IF_STRICT: Final = frozenset(code for code, row in CODES.items() if row.raised_if_strict)
"""Notes that a strict check takes for warnings."""

REPAIRABLE: Final = frozenset(code for code, mend in MENDS.items() if not mend.guesses)
"""What can be mended without guessing."""
