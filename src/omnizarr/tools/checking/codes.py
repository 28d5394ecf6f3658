"""The kinds of things that a check finds: their names, which stay, and what to do about each.

`docs/checking.md` lists them for users; a test keeps the two in step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple


class Code(NamedTuple):
    """What is known of all findings of one kind."""

    severity: Literal["error", "warning", "note"]
    meaning: str
    remedy: str


_REWRITE = "spell it as the text does"
_RESTORE = "restore it from a copy, or write it again"

CODES: Final[Mapping[str, Code]] = {
    # Documents as JSON
    "not-json": Code("error", "a document is no JSON, is empty, or is nested without end", _RESTORE),
    "not-utf8": Code("error", "a document is not in UTF-8", _RESTORE),
    "repeated-member": Code("error", "an object in a document has two members of one name", "delete the wrong one"),
    "bare-nan": Code(
        "warning", "NaN or Infinity stand outside of attributes, as JSON does not allow", 'quote them: "NaN"'
    ),
    "nonfinite-attribute": Code(
        "note",
        "NaN or Infinity in an attribute, for which strict readers of JSON refuse the document",
        'if those shall read it: set it anew with omnizarr.config.set({"attributes.nonfinite": "string"})',
    ),
    "byte-order-mark": Code("warning", "a document begins with a byte order mark", "delete its first three bytes"),
    # Documents as metadata
    "missing-member": Code("error", "a required member is missing", _RESTORE),
    "unknown-member": Code("error", "a member that no text defines, and that may not be ignored", "delete it"),
    "wrong-zarr-format": Code("error", "zarr_format is not that of the document", _RESTORE),
    "invalid-fill-value": Code("error", "the fill value is no value of the data type", "correct it"),
    "invalid-metadata": Code("error", "a document breaks its format otherwise", "correct it"),
    "unusable-codecs": Code("error", "codecs that cannot be combined or configured so", "correct the list of codecs"),
    "extra-member": Code("note", "a member that no text defines, passed over by readers", "move it to the attributes"),
    "tolerated-spelling": Code("note", "spelled otherwise than the text has it, and understood", _REWRITE),
    # Conventions
    "array-dimensions": Code(
        "warning",
        "_ARRAY_DIMENSIONS has not one name per dimension; xarray refuses the whole group",
        "correct the attribute",
    ),
    "mask-of-another-type": Code(
        "warning", "the attribute _FillValue is no value of the data type", "correct the attribute"
    ),
    "mask-unreadable": Code(
        "warning",
        "the attribute _FillValue of a v3 array is not in the form that xarray reads; xarray refuses the whole group",
        "write the form that is expected",
    ),
    "coordinate-length": Code(
        "warning",
        "a dimension is longer or shorter than the coordinate of its name; xarray refuses the whole group",
        "resize one of the two arrays",
    ),
    "anndata-missing-node": Code(
        "warning", "a node is missing that attributes of anndata speak of", "restore the node, or correct the attribute"
    ),
    "crs-unreadable": Code(
        "warning", "the attribute _CRS has no form that GDAL reads", "write it with a member wkt, projjson or url"
    ),
    "ome-wrong-form": Code(
        "warning",
        "OME-Zarr 0.4 in Zarr v3, or 0.5 in v2, where most readers do not look for it",
        "convert from the other Zarr format, or move them",
    ),
    "ome-both-forms": Code(
        "warning",
        "OME-Zarr's metadata lie both in the attribute ome and outside of it, and readers choose either",
        "delete those that are out of date",
    ),
    "ome-version": Code(
        "warning",
        "the version of OME-Zarr is missing, or is not that of the form or of the group",
        "correct the version",
    ),
    "ome-unknown-version": Code(
        "note",
        "a version of OME-Zarr that is not known here: only the paths of its levels and groups were looked at",
        "none needed",
    ),
    "ome-invalid": Code(
        "error",
        "OME-Zarr's metadata lack something that they must have, or it is of another type",
        "correct the attributes",
    ),
    "ome-axes": Code(
        "error",
        "axes of an image that OME-Zarr does not allow: their number, names, types or order",
        "correct the axes",
    ),
    "ome-axes-count": Code(
        "error",
        "an image has more or fewer axes than the arrays of its levels have dimensions",
        "correct the axes",
    ),
    "ome-transformations": Code(
        "error",
        "coordinateTransformations that are not a scale and at most one translation, with a number for each axis",
        "correct the transformations",
    ),
    "ome-missing-level": Code(
        "error",
        "a level of an image has no array that can be read",
        "restore the array, or take the level from the list",
    ),
    "ome-missing-group": Code(
        "warning",
        "a label, well, field or series is listed, and there is none that can be read",
        "restore the group, or take it from the list",
    ),
    "ome-level-order": Code(
        "warning",
        "a level of an image is larger than the one before",
        "list the levels by size, the largest first",
    ),
    "ome-dimension-names": Code(
        "warning",
        "the dimensions of a level are not named like the axes, as OME-Zarr 0.5 requires",
        "write dimension_names",
    ),
    "ome-separator": Code(
        "warning",
        "chunks of a level are not in directories, as OME-Zarr has them from 0.2 to 0.4; some readers find none",
        "convert the image to another place",
    ),
    "ome-label-type": Code(
        "warning",
        "the pixels of a label image are no integers",
        "store integers",
    ),
    # Against the letter, though understood
    "integer-with-fraction": Code(
        "warning", "an integer written as 0.0 or 1e2, in a fill value or a parameter; zarrs fails", _REWRITE
    ),
    "infinity-spelling": Code(
        "warning", "+Infinity, as the draft of 2020 has it, in v2 or v3; most readers fail", _REWRITE
    ),
    "loose-fill-value": Code(
        "warning",
        "a fill value of another kind than its data type: a number for text, bytes, records or booleans; most readers "
        "fail",
        _REWRITE,
    ),
    "raw-bits-as-text": Code(
        "warning",
        "the fill value of raw bits in base64, or a number, where the text has a list: TensorStore reads base64 alone",
        "spell it as the text does, unless TensorStore is to read it",
    ),
    "legacy-struct": Code(
        "warning", "a struct with fields as pairs, or its fill value in base64, as structured had them", _REWRITE
    ),
    "missing-parameter": Code(
        "warning", "a required parameter of a codec or data type is missing; most readers fail", "add it"
    ),
    "invalid-typesize": Code(
        "warning", "blosc with a typesize that is not from 1 to 255; most readers fail", "name the item size"
    ),
    "shuffle-of-other-format": Code(
        "warning", "blosc with shuffle as a number in v3, or as a word in v2; most readers fail", _REWRITE
    ),
    "time-without-unit": Code(
        "warning", "a date or duration without a unit in Zarr v2; zarr-python fails", "find out the unit, and add it"
    ),
    "short-name": Code(
        "note",
        "a bare name in place of an object, as the text allows since 3.1; TensorStore and zarr-python fail",
        'write {"name": ...}',
    ),
    # Extensions
    "unknown-extension": Code(
        "error",
        "a codec, type, grid, key encoding or transformer that nobody here knows",
        "install a package that provides it",
    ),
    "optional-extension": Code("note", "an extension that nobody here knows, and need not", "none needed"),
    "unregistered-extension": Code(
        "note",
        "a name that works here but is not in the registry of zarr-extensions",
        "re-encode with registered codecs if others shall read it",
    ),
    "private-extension": Code("error", "a name that omnizarr keeps for itself", "correct the document"),
    "extension-alias": Code("note", "another name of a registered extension", "use the registered name"),
    "missing-package": Code("note", "an optional package is needed to read the chunks", "install it"),
    "pickled-objects": Code(
        "note", "chunks are pickles, and were not decoded: that can run any code", "convert them to strings or JSON"
    ),
    # Hierarchy
    "array-and-group": Code("error", "one node has the documents of an array and of a group", "delete the wrong one"),
    "two-formats": Code(
        "note", "documents of two formats lie at one node, and agree", "zarr_format= tells which to open"
    ),
    "formats-disagree": Code(
        "warning",
        "documents of two formats lie at one node, and describe different nodes",
        "delete those that are out of date",
    ),
    "mixed-formats": Code(
        "warning",
        "a node of one format below a group of another, in which others do not find it",
        "convert one of them",
    ),
    "missing-group": Code("warning", "a group has no document, though nodes lie below it", "create the group"),
    "missing-root": Code("note", "the root has no document, only nodes below it", "create a group at the root"),
    "attributes-without-node": Code(
        "warning",
        "attributes lie where no document says that there is a node",
        "restore the document of the node, or delete the attributes",
    ),
    "attributes-missing": Code(
        "warning", "the document of the attributes is required, and missing", "write an empty one: {}"
    ),
    "node-below-array": Code("error", "a node below an array, where there can be none", "move it elsewhere"),
    "only-consolidated": Code(
        "warning",
        "only consolidated metadata speaks of a node, which has no document",
        "write the documents that it holds",
    ),
    "lost-entry-point": Code(
        "error",
        "documents of a draft of v3 without the entry point of their hierarchy",
        "restore zarr.json at the root of the hierarchy",
    ),
    # Names
    "invalid-node-name": Code("error", "a node has a name that its format forbids", "rename it"),
    "names-differ-by-case": Code(
        "warning", "siblings whose names differ only by case: one on many file systems", "rename one of them"
    ),
    "names-look-alike": Code("warning", "siblings whose names are the same text in Unicode", "rename one of them"),
    "name-not-normalized": Code(
        "note", "a name is not in Unicode's form NFC: some file systems change it", "rename the node"
    ),
    "reserved-node-name": Code(
        "warning",
        "a name that begins with __, which Zarr v3 reserves: xarray writes such names, zarrs does not open them",
        "rename it if zarrs is to read it",
    ),
    "unreachable-node": Code(
        "error",
        "a directory that the store has no keys for, by its name or as a link out of the store: it cannot be read",
        "rename it, or open it as a store of its own",
    ),
    # Consolidated metadata
    "stale-consolidated-metadata": Code(
        "error",
        "a copy in consolidated metadata does not say what the document says",
        "run omnizarr.consolidate_metadata",
    ),
    "broken-consolidated-metadata": Code(
        "error", "consolidated metadata cannot be read", "run omnizarr.consolidate_metadata"
    ),
    "unknown-consolidated-metadata": Code(
        "warning", "consolidated metadata is of a form that nobody here knows", "run omnizarr.consolidate_metadata"
    ),
    # Keys
    "chunk-beyond-grid": Code(
        "warning",
        "a chunk lies beyond the array's shape, where other programs would show it if the array grows",
        "delete it, unless the shape is wrong",
    ),
    "misspelt-chunk-key": Code(
        "error", "a chunk whose key has superfluous zeros or signs, so that nobody reads it", "rename it"
    ),
    "foreign-chunk-key": Code(
        "error",
        "a chunk under a key of another encoding or separator, so that nobody reads it",
        "rename it, or correct the document",
    ),
    "orphan-chunks": Code("error", "chunks without an array", "restore the document of the array, or delete them"),
    "stray-key": Code("warning", "something in an array that is neither chunk nor document", "move it elsewhere"),
    "unfinished-conversion": Code(
        "error",
        "a conversion to this place was interrupted, so that nodes may be missing",
        "continue it with omnizarr convert --resume, or begin anew with --overwrite",
    ),
    "foreign-file": Code("note", "something that is no part of the hierarchy", "none needed"),
    "system-file": Code("note", "a file that an operating system left", "delete it"),
    "temporary-file": Code(
        "warning", "what a writer left that was killed or is still at work", "delete it if nobody is writing"
    ),
    "lock-file": Code(
        "note", "a lock that a writer left that was killed or is still at work", "delete it if nobody is writing"
    ),
    # Chunks
    "missing-chunks": Code("note", "chunks are not stored, and read as the fill value", "none needed, if so intended"),
    "undefined-chunks": Code(
        "warning",
        "chunks are not stored, and nothing says what they hold",
        "give the array a fill value, or write them",
    ),
    "empty-chunk": Code("error", "a stored chunk has no bytes", _RESTORE),
    "wrong-chunk-size": Code("error", "a chunk has more or fewer bytes than its shape takes", _RESTORE),
    "undecodable-chunk": Code("error", "a chunk cannot be decoded: torn, or of another codec", _RESTORE),
    "checksum-mismatch": Code("error", "a checksum is not that of the data", _RESTORE),
    "legacy-zstd": Code(
        "warning",
        "a chunk with Zstandard of before its format was settled: zarr 1.1; others fail",
        "write it again with another compressor",
    ),
    "trailing-bytes": Code("warning", "bytes follow the compressed data, and are not read", "write the chunk again"),
    "shard-index-broken": Code("error", "the index of a shard cannot be read: the shard is torn", _RESTORE),
    "shard-tail-torn": Code(
        "error",
        "the end of a shard is torn, but it was whole before something was added to it",
        "cut off what was added",
    ),
    "shard-index-outside": Code("error", "the index of a shard points outside it", _RESTORE),
    "shard-overlap": Code("warning", "inner chunks of a shard overlap", "write the shard again"),
    "unreadable-key": Code("error", "the store cannot read a value", "look at the store's own message"),
    # What writers are known to have done
    "missing-filters": Code("warning", "no filters member: netCDF-C, old zarrs; some readers fail", _REWRITE),
    "empty-filters": Code("note", "filters is [] where the text has null: zarrs, zarr-python", _REWRITE),
    "null-separator": Code("warning", "dimension_separator is null; some readers fail", _REWRITE),
    "undeclared-separator": Code(
        "warning",
        "chunks nested in directories without dimension_separator: zarr-python "
        "before 2.8; most readers find no chunk, and show the fill value",
        'add "dimension_separator": "/"',
    ),
    "numbers-as-strings": Code(
        "warning", "parameters of codecs as strings: netCDF-C before 4.10; most readers fail", _REWRITE
    ),
    "shuffle-word": Code(
        "warning", "blosc with shuffle as a word in capitals: GDAL before 3.8; most readers fail", _REWRITE
    ),
    "fill-value-as-string": Code(
        "warning", "an integer fill value as a string: GDAL, for large integers; others fail", _REWRITE
    ),
    "zero-elementsize": Code(
        "warning",
        "shuffle with elementsize 0, meaning the item size: netCDF-C; others read wrong values or fail",
        _REWRITE,
    ),
    "missing-elementsize": Code(
        "warning",
        "shuffle without elementsize: the item size in Zarr v3, as netCDF-C writes it, 4 in v2; some readers differ",
        _REWRITE,
    ),
    "netcdf-byte-order": Code(
        "error",
        "big-endian by its dtype, but stored little-endian: netCDF-C 4.8.0 to 4.9.2; readers get wrong numbers",
        "give the dtype the other byte order, after a look at the values",
    ),
    "nczarr-repaired": Code(
        "warning",
        "what netCDF-C says of netCDF is broken, or means otherwise than it says; omnizarr.netcdf reads it right",
        "copy it with omnizarr.netcdf, which writes what is meant",
    ),
    "netcdf-short-fill": Code(
        "note",
        "netCDF's default fill value of double with six digits: all versions of netCDF-C; as Zarr another number",
        "none needed",
    ),
    "nczarr-members": Code("note", "members of NCZarr in .zarray or .zgroup: netCDF-C before 4.9.3", "none needed"),
    "byte-order-of-bytes": Code(
        "warning", "a type of single bytes with a byte order: netCDF-C; some readers fail", _REWRITE
    ),
    "missing-byte-order": Code(
        "warning", "a type without a byte order character: xtensor-zarr; some readers fail", _REWRITE
    ),
    "bare-type-name": Code("note", "a type by its name, as TensorStore has it; others do not know it", "none needed"),
    "fixed-width-strings": Code(
        "warning",
        "a fixed-width dtype of text stored by a codec of variable width: zarr-python 3.0; others fail",
        _REWRITE,
    ),
    "objects-without-codec": Code(
        "error",
        "Python objects without a codec for them: no chunk can be read",
        "find out how they were written, and add the filter",
    ),
    "null-fill-value": Code(
        "warning", "fill_value is null in Zarr v3: zarrita.js, NCZarr; some readers fail", _REWRITE
    ),
    "empty-fill-value": Code("warning", 'fill_value is "" for numbers: NCZarr; most readers fail', _REWRITE),
    "fill-value-kind": Code(
        "warning",
        "a fill value of another kind of JSON than the data type has, such as 0 for false; most readers fail",
        _REWRITE,
    ),
    "null-member": Code(
        "warning", "null in place of a member that is not there: zarrita of 2023; some readers fail", _REWRITE
    ),
    "endian-codec": Code("warning", "codec endian, the name of bytes until August 2023; most readers fail", _REWRITE),
    "missing-endian": Code(
        "warning", "bytes without endian for items of several bytes: zarr-python; some readers fail", _REWRITE
    ),
    "missing-codecs": Code(
        "warning",
        "no member codecs, though v3 requires it: GDAL, for chunks without compression; most readers fail",
        _REWRITE,
    ),
    "codec-id": Code(
        "warning",
        "the id of a codec in its configuration: zarr-python 3.0 with numcodecs 0.14; most readers fail",
        _REWRITE,
    ),
    "empty-codecs": Code("warning", "no codec at all: zarrita of 2023, zarrita.js; most readers fail", _REWRITE),
    "missing-serializer": Code("warning", "no array to bytes codec: zarrita of June 2023; most readers fail", _REWRITE),
    "transpose-letter": Code(
        "warning", "transpose with order C or F instead of axes: zarrita of 2023; most readers fail", _REWRITE
    ),
    "missing-index-codecs": Code(
        "warning", "a shard without index_codecs: text of June 2023; most readers fail", _REWRITE
    ),
    "zero-chunk-length": Code("note", "chunk length 0 of a dimension without elements; some readers fail", _REWRITE),
    "codec-uri": Code("warning", "a codec's URI without its name: zarr-python before 2.17; even that fails", _REWRITE),
    "hidden-filters": Code(
        "warning",
        "filters among the attributes: zarr-python's 2020 draft; others read wrong values",
        "convert the array to another format",
    ),
    "draft-scalar-key": Code("note", "the chunk of a scalar under c0 instead of c: zarr-python, GDAL", "rename it"),
    "order-not-stored": Code(
        "warning",
        "order F, but bytes in order C: zarr 1, where the codec is not blosc",
        "convert the array to another format",
    ),
    "gzip-is-zlib": Code("note", "gzip, by which zarr 1 meant a zlib stream", "none needed"),
    "titled-field": Code(
        "warning",
        "a field with a title or shape, which zarr 1 wrote and cannot read",
        "convert the array to another format",
    ),
}

RAISED_IF_STRICT: Final = frozenset({"unregistered-extension", "nonfinite-attribute"})
"""Notes that a strict check takes for warnings."""

REPAIRABLE: Final = frozenset(
    {
        "bare-nan",
        "byte-order-mark",
        "missing-group",
        "missing-root",
        "attributes-missing",
        "only-consolidated",
        "stale-consolidated-metadata",
        "broken-consolidated-metadata",
        "unknown-consolidated-metadata",
        "temporary-file",
        "lock-file",
        "missing-filters",
        "empty-filters",
        "null-separator",
        "undeclared-separator",
        "numbers-as-strings",
        "shard-tail-torn",
        "shuffle-word",
        "fill-value-as-string",
        "missing-serializer",
        "zero-elementsize",
        "missing-elementsize",
        "byte-order-of-bytes",
        "missing-byte-order",
        "fixed-width-strings",
        "null-fill-value",
        "empty-fill-value",
        "fill-value-kind",
        "null-member",
        "endian-codec",
        "missing-endian",
        "missing-codecs",
        "codec-id",
        "integer-with-fraction",
        "infinity-spelling",
        "loose-fill-value",
        "legacy-struct",
        "missing-parameter",
        "invalid-typesize",
        "shuffle-of-other-format",
        "short-name",
        "empty-codecs",
        "transpose-letter",
        "missing-index-codecs",
        "zero-chunk-length",
        "codec-uri",
        "draft-scalar-key",
    }
)
"""What can be mended without guessing."""
