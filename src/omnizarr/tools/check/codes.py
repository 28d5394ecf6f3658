"""The kinds of findings, in one table.

Checks take severity, meaning and remedy from it; repairs take the action and its conditions; the manual takes its
tables (`python -m tests.tables`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

from omnizarr.errors import Function, Remedy, Setting

Part: TypeAlias = Literal["document", "missing", "copied", "consolidated", "key", "chunk", "leftover"]
"""The part of a hierarchy that a repair changes; each has a module in `omnizarr.tools.repair`."""
_CONSOLIDATE: Final = Remedy("run {consolidate_metadata}", consolidate_metadata=Function())


class Mend(NamedTuple):
    """How findings of one kind are repaired.

    Attributes
    ----------
    part : str
        The part of the hierarchy that is changed.
    done : str
        The change, for the manual.
    why : str
        Why the change is certainly right, or, if `asked`, what to consider first.
    asked : bool
        Whether it is done only if you name the code (`codes=`, `--only`).
    guesses : bool
        Whether it may require guessing, or gives something up. Such findings do not count as repairable.
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
    """One kind of finding.

    Attributes
    ----------
    code : str
        The name of the kind, which never changes.
    severity, meaning, remedy : str
        How bad it is, what it means, and what to do.
    mend : Mend or None
        How it is repaired; None if no program can.
    raised_if_strict : bool
        Whether it is a note that a strict check reports as a warning.
    """

    code: str
    severity: Literal["error", "warning", "note"]
    meaning: str
    remedy: str
    mend: Mend | None = None
    raised_if_strict: bool = False


_REWRITE: Final = "spell it as the specification does"
_RESTORE: Final = "restore it from a copy, or write it again"

SECTIONS: Final[Mapping[str, tuple[Code, ...]]] = {
    "Documents as JSON": (
        Code("not-json", "error", "a document is not JSON, is empty, or is nested too deeply", _RESTORE),
        Code("not-utf8", "error", "a document is not in UTF-8", _RESTORE),
        Code("repeated-member", "error", "an object in a document has two members with the same name",
             "delete the wrong one",
             Mend("document", "the second member is removed",
                  "only if both have the same value; otherwise it is left", guesses=True)),
        Code("bare-nan", "warning", "a bare NaN or Infinity outside of attributes, which JSON does not allow",
             'quote them: "NaN"',
             Mend("document", "the token is put in quotes",
                  "in fill values and configurations the string means the same; attributes, where it does not, are "
                  "left")),
        Code("nonfinite-attribute", "note",
             "a bare NaN or Infinity in an attribute; strict JSON readers refuse the document",
             Remedy("for such readers, set the attribute again with {setting}",
                    setting=Setting("attributes.nonfinite", "string")),
             raised_if_strict=True),
        Code("byte-order-mark", "warning", "a document begins with a byte order mark", "delete its first three bytes",
             Mend("document", "the mark is removed", "it has no meaning in UTF-8")),
    ),
    "Documents as metadata": (
        Code("missing-member", "error", "a required member is missing", _RESTORE),
        Code("unknown-member", "error", "a member that no specification defines, and that readers must not ignore",
             "delete it"),
        Code("wrong-zarr-format", "error", "zarr_format does not match the document", _RESTORE),
        Code("invalid-fill-value", "error", "the fill value is not a value of the data type", "correct it"),
        Code("invalid-metadata", "error", "a document breaks its format in another way", "correct it"),
        Code("unusable-codecs", "error", "codecs that cannot be combined or configured like this",
             "correct the list of codecs"),
        Code("extra-member", "note", "a member that no specification defines, and that readers ignore",
             "move it to the attributes"),
        Code("tolerated-spelling", "note", "a spelling that differs from the specification, but is understood",
             _REWRITE),
    ),
    "Against the letter, though understood": (
        Code("integer-with-fraction", "warning",
             "an integer written as 0.0 or 1e2, in a fill value or a parameter; zarrs fails", _REWRITE,
             Mend("document", "`1e2` becomes `100`", "it is the same number")),
        Code("infinity-spelling", "warning",
             "+Infinity, the spelling of the 2020 draft, in v2 or v3; most readers fail",
             _REWRITE,
             Mend("document", '`"+Infinity"` becomes `"Infinity"`', "it is the same number")),
        Code("loose-fill-value", "warning",
             "a fill value of the wrong kind for its data type: a number for text, bytes, records or booleans; most "
             "readers fail", _REWRITE,
             Mend("document", "the value is spelled as the specification requires for the data type",
                  "readers that accept it read this value. A NaN with other bits is left, because v2 cannot store it")),
        Code("raw-bits-as-text", "warning",
             "the fill value of raw bits as base64 or a number, where the specification requires a list; TensorStore "
             "reads only base64", "spell it as the specification does, unless TensorStore must read it"),
        Code("legacy-struct", "warning",
             "a struct with fields as pairs, or its fill value in base64, as in the older structured", _REWRITE,
             Mend("document", "objects replace pairs and base64", "they mean the same")),
        Code("missing-parameter", "warning",
             "a required parameter of a codec or data type is missing; most readers fail", "add it",
             Mend("document",
                  "the default is written: what omnizarr uses to write chunks; 1 for `scale_factor`",
                  "decoding does not need it. Parameters that decoding needs, such as the `dtype` of `delta`, are "
                  "left")),
        Code("invalid-typesize", "warning", "blosc with a typesize that is not from 1 to 255; most readers fail",
             "write the item size",
             Mend("document", "the item size is written; 1 if it is above 255, as in C-Blosc",
                  "decoding does not need it")),
        Code("shuffle-of-other-format", "warning",
             "blosc with shuffle as a number in v3, or as a word in v2; most readers fail", _REWRITE,
             Mend("document", "the number becomes the word, or the word the number", "they mean the same")),
        Code("time-without-unit", "warning", "a date or duration without a unit in Zarr v2; zarr-python fails",
             "find out the unit and add it"),
        Code("short-name", "note",
             "a bare name in place of an object, which v3.1 allows; TensorStore and zarr-python fail",
             'write {"name": ...}',
             Mend("document", 'the name becomes `{"name": ...}`', "both mean the same in the specification")),
    ),
    "Conventions": (
        Code("array-dimensions", "warning",
             "_ARRAY_DIMENSIONS does not have one name per dimension; xarray refuses the whole group",
             "correct the attribute"),
        Code("mask-of-another-type", "warning", "the attribute _FillValue is not a value of the data type",
             "correct the attribute"),
        Code("mask-unreadable", "warning",
             "the attribute _FillValue of a v3 array is not in the form that xarray reads; xarray refuses the whole "
             "group", "write the expected form"),
        Code("coordinate-length", "warning",
             "a dimension and the coordinate with its name differ in length; xarray refuses the whole group",
             "resize one of the two arrays"),
        Code("anndata-missing-node", "warning", "a node that attributes of anndata refer to is missing",
             "restore the node, or correct the attribute"),
        Code("crs-unreadable", "warning", "the attribute _CRS does not have a form that GDAL reads",
             "write it with a member wkt, projjson or url"),
        Code("ome-wrong-form", "warning",
             "OME-Zarr 0.4 in Zarr v3, or 0.5 in v2, where most readers do not look for it",
             "convert from the other Zarr format, or move them"),
        Code("ome-both-forms", "warning",
             "OME-Zarr's metadata is both inside the attribute ome and outside of it, and readers use one or the other",
             "delete the outdated metadata"),
        Code("ome-version", "warning", "the version of OME-Zarr is missing, or contradicts the form or the group",
             "correct the version"),
        Code("ome-unknown-version", "note",
             "a version of OME-Zarr unknown to omnizarr: only the paths of its levels and groups were checked",
             "none needed"),
        Code("ome-invalid", "error", "OME-Zarr's metadata lacks a required member, or a member has the wrong type",
             "correct the attributes"),
        Code("ome-axes", "error", "axes of an image that OME-Zarr does not allow: their number, names, types or order",
             "correct the axes"),
        Code("ome-axes-count", "error",
             "the number of axes of an image differs from the number of dimensions of its levels",
             "correct the axes"),
        Code("ome-transformations", "error",
             "coordinateTransformations that are not a scale and at most one translation, with a number for each axis",
             "correct the transformations"),
        Code("ome-missing-level", "error", "a level of an image has no readable array",
             "restore the array, or take the level from the list"),
        Code("ome-missing-group", "warning",
             "a listed label, well, field or series does not exist or is unreadable",
             "restore the group, or take it from the list"),
        Code("ome-level-order", "warning", "a level of an image is larger than the one before",
             "list the levels by size, the largest first"),
        Code("ome-dimension-names", "warning",
             "the dimension names of a level differ from the axes; OME-Zarr 0.5 requires them to be equal",
             "write dimension_names"),
        Code("ome-separator", "warning",
             "chunks of a level are not in directories, as OME-Zarr 0.2 to 0.4 requires; some readers do not find them",
             "convert the image to a new place"),
        Code("ome-zip", "note",
             "a file .ozx has compressed entries, another order, or another comment than RFC-9 of OME-NGFF recommends",
             "convert it to another file .ozx", raised_if_strict=True),
        Code("ome-label-type", "warning", "the pixels of a label image are not integers", "store integers"),
    ),
    "Extensions": (
        Code("unknown-extension", "error", "a codec, type, grid, key encoding or transformer unknown to omnizarr",
             "install a package that provides it"),
        Code("optional-extension", "note", "an unknown extension that may be ignored", "none needed"),
        Code("unregistered-extension", "note",
             "a name that omnizarr knows, but that is not in the registry zarr-extensions",
             "encode the chunks again with registered codecs if other programs must read them", raised_if_strict=True),
        Code("uneven-inner-chunks", "note",
             "inner chunks do not divide the shard, which is proposed; readers of version 1.0 of the codec refuse it",
             "encode the chunks again, with inner chunks that divide the shard", raised_if_strict=True),
        Code("private-extension", "error", "a name that omnizarr reserves for itself", "correct the document"),
        Code("extension-alias", "note", "another name of a registered extension", "use the registered name"),
        Code("missing-package", "note", "an optional package is needed to read the chunks", "install it"),
        Code("pickled-objects", "note", "chunks are pickles, and were not decoded, because this can run any code",
             "convert them to strings or JSON"),
    ),
    "Nodes in their hierarchy": (
        Code("array-and-group", "error", "one node has the documents of an array and of a group",
             "delete the wrong one"),
        Code("two-formats", "note", "a node has documents of two formats, which agree",
             Remedy("choose one") | Remedy("open it with {zarr_format}", zarr_format=...)),
        Code("formats-disagree", "warning", "a node has documents of two formats, which describe different nodes",
             "delete the outdated documents"),
        Code("mixed-formats", "warning",
             "a node of one format below a group of another format; other programs do not find it",
             "convert one of them"),
        Code("missing-group", "warning",
             "a group has no document, although there are nodes below it", "create the group",
             Mend("missing", "a document of a group without attributes is written",
                  "a group above and nodes below show that the group exists")),
        Code("missing-root", "note", "the root has no document, only nodes below it", "create a group at the root",
             Mend("missing",
                  "a document of a group without attributes is written, for groups in between as well",
                  "only you know whether all nodes below belong together", asked=True)),
        Code("attributes-without-node", "warning", "attributes at a place without the document of a node",
             "restore the document of the node, or delete the attributes"),
        Code("attributes-missing", "warning", "the document of the attributes is required, but missing",
             "write an empty one: {}",
             Mend("missing", "`{}` is written", "there are no attributes")),
        Code("node-below-array", "error", "a node below an array, where no node can be", "move it elsewhere"),
        Code("only-consolidated", "warning", "a node is in consolidated metadata, but has no document",
             "write the documents that it contains",
             Mend("copied", "the documents are written from consolidated metadata",
                  "nothing else describes the nodes, and existing documents are not replaced")),
        Code("lost-entry-point", "error", "documents of a draft of v3 without the entry point of their hierarchy",
             "restore zarr.json at the root of the hierarchy"),
    ),
    "Names": (
        Code("invalid-node-name", "error", "a node has a name that its format forbids", "rename it"),
        Code("reserved-node-name", "warning",
             "a name that begins with __, which Zarr v3 reserves: xarray writes such names, zarrs does not open them",
             "rename it if zarrs is to read it"),
        Code("unreachable-node", "error",
             "a directory that the store cannot address, because of its name or because it is a link out of the store",
             "rename it, or open it as a store of its own"),
        Code("names-differ-by-case", "warning",
             "siblings whose names differ only by case: many file systems treat them as one",
             "rename one of them"),
        Code("names-look-alike", "warning",
             "siblings with names that are the same text in Unicode", "rename one of them"),
        Code("name-not-normalized", "note", "a name is not in Unicode's form NFC: some file systems change such names",
             "rename the node"),
    ),
    "Consolidated metadata": (
        Code("stale-consolidated-metadata", "error",
             "a copy in consolidated metadata differs from the document", _CONSOLIDATE,
             Mend("consolidated", "the copies are made again from the documents",
                  "the documents are right, also after other repairs")),
        Code("broken-consolidated-metadata", "error", "consolidated metadata cannot be read", _CONSOLIDATE,
             Mend("consolidated", "the copies are made again from the documents",
                  "the documents are right; not done while a document is broken")),
        Code("unknown-consolidated-metadata", "warning", "consolidated metadata has a form unknown to omnizarr",
             _CONSOLIDATE,
             Mend("consolidated", "the copies are made again, in the form that omnizarr knows",
                  "the form of the copies may be newer than this release of omnizarr", asked=True)),
    ),
    "Keys": (
        Code("chunk-beyond-grid", "warning",
             "a chunk beyond the array's shape; other programs would show it if the array grows",
             "delete it, unless the shape is wrong",
             Mend("chunk", "the chunk is deleted", "its values are lost, if the shape is wrong", asked=True,
                  guesses=True)),
        Code("misspelt-chunk-key", "error",
             "a chunk that is never read, because its key has superfluous zeros or signs",
             "rename it"),
        Code("foreign-chunk-key", "error",
             "a chunk that is never read, because its key has another encoding or separator",
             "rename it, or correct the document"),
        Code("orphan-chunks", "error", "chunks without an array", "restore the document of the array, or delete them"),
        Code("stray-key", "warning", "a key in an array that is neither a chunk nor a document", "move it elsewhere"),
        Code("unfinished-conversion", "error",
             "a conversion to this place was interrupted, so that nodes may be missing",
             "continue it with the same command and --resume, or start again with --overwrite"),
        Code("foreign-file", "note", "a key that is not part of the hierarchy", "none needed"),
        Code("system-file", "note", "a file that an operating system left behind", "delete it",
             Mend("leftover", "the file is deleted", "it is harmless", asked=True, guesses=True)),
        Code("temporary-file", "warning", "a temporary file of a writer that was killed or is still writing",
             "delete it if no program is writing",
             Mend("leftover", "the file is deleted", "it is at least an hour old (`older_than=`) and not locked")),
        Code("lock-file", "note", "a lock file of a writer that was killed or is still writing",
             "delete it if no program is writing",
             Mend("leftover", "the file is deleted",
                  "it is at least an hour old (`older_than=`), not locked, and empty")),
    ),
    "Chunks": (
        Code("missing-chunks", "note", "chunks are not stored, and read as the fill value",
             "none needed, if this is intended"),
        Code("undefined-chunks", "warning", "chunks are not stored, and the array has no fill value",
             "give the array a fill value, or write the chunks"),
        Code("empty-chunk", "error", "a stored chunk has no bytes", _RESTORE,
             Mend("chunk", "the chunk is deleted",
                  "reading it returns the fill value instead of raising an error", asked=True, guesses=True)),
        Code("wrong-chunk-size", "error", "a chunk has more or fewer bytes than its shape requires", _RESTORE,
             Mend("chunk", "the chunk is deleted",
                  "the rest of the chunk is lost; reading returns the fill value", asked=True, guesses=True)),
        Code("undecodable-chunk", "error", "a chunk cannot be decoded: it is cut off, or has another codec", _RESTORE,
             Mend("chunk", "the chunk is deleted",
                  "the rest of the chunk is lost; reading returns the fill value", asked=True, guesses=True,
                  decodes=True)),
        Code("checksum-mismatch", "error", "a checksum does not match the data", _RESTORE,
             Mend("chunk", "the chunk is deleted",
                  "its values are lost, perhaps because of one wrong bit; reading returns the fill value", asked=True,
                  guesses=True, decodes=True)),
        Code("legacy-zstd", "warning",
             "a chunk in a format of Zstandard from before 0.8: zarr 1.1; other programs fail",
             "write it again with another compressor"),
        Code("trailing-bytes", "warning", "a chunk has more bytes after the compressed data, which are not read",
             "write the chunk again"),
        Code("shard-index-broken", "error", "the index of a shard cannot be read: the shard is cut off", _RESTORE),
        Code("shard-tail-torn", "error",
             "the end of a shard is cut off, but the shard was complete before something was added to it",
             "remove the added bytes",
             Mend("chunk", "the bytes after the last complete index are removed",
                  "the checksum of this index is right, its inner chunks are before it, and each can be decoded",
                  decodes=True)),
        Code("shard-index-outside", "error", "the index of a shard points outside it", _RESTORE,
             Mend("chunk", "the inner chunks outside are marked as missing",
                  "reading these inner chunks returns the fill value instead of raising an error", asked=True,
                  guesses=True, decodes=True)),
        Code("shard-overlap", "warning", "inner chunks of a shard overlap", "write the shard again"),
        Code("unlisted-store", "note", "the server cannot list its keys: only nodes that documents name were checked",
             Remedy("check it in a store that can be listed").also("{data} requests each chunk", data=True)),
        Code("unreadable-key", "error", "the store cannot read a value", "see the store's own message"),
    ),
    "Digests": (
        Code("digest-mismatch", "error", "values or metadata have changed since the digest was made", _RESTORE),
        Code("digest-missing", "error", "a node with a digest is missing", _RESTORE),
        Code("digest-unlisted", "error", "a node has no digest", "make the digests again, or remove the node"),
    ),
    "Known mistakes of writers": (
        Code("missing-filters", "warning", "no filters member: netCDF-C, old zarrs; some readers fail", _REWRITE,
             Mend("document", '`"filters": null` is written', "readers that accept it take it as null")),
        Code("empty-filters", "note", "filters is [] instead of null: zarrs, zarr-python", _REWRITE,
             Mend("document", "`[]` becomes `null`", "both mean no filters")),
        Code("null-separator", "warning", "dimension_separator is null; some readers fail", _REWRITE,
             Mend("document", "the member is removed", "the separator is then `.`")),
        Code("undeclared-separator", "warning",
             "chunks nested in directories without dimension_separator: zarr-python before 2.8; most readers find no "
             "chunk, and show the fill value", 'add "dimension_separator": "/"',
             Mend("document", '`"dimension_separator": "/"` is written',
                  "all chunks have this separator; if some have dots, it is left")),
        Code("numbers-as-strings", "warning",
             "parameters of codecs as strings: netCDF-C before 4.10; most readers fail", _REWRITE,
             Mend("document", '`"3"` becomes `3`', "the parameter is a number")),
        Code("shuffle-word", "warning", "blosc with shuffle as a word in capitals: GDAL before 3.8; most readers fail",
             _REWRITE,
             Mend("document", '`"BYTE"` becomes `1`',
                  "GDAL uses these words, and Blosc chunks record how they are shuffled")),
        Code("fill-value-as-string", "warning",
             "an integer fill value as a string: GDAL, for large integers; others fail", _REWRITE,
             Mend("document", '`"3"` becomes `3`', "the data type is an integer type")),
        Code("zero-elementsize", "warning",
             "shuffle with elementsize 0, meaning the item size: netCDF-C; other programs read wrong values or fail",
             _REWRITE,
             Mend("document", "the item size is written", "this is what 0 means in netCDF-C")),
        Code("missing-elementsize", "warning",
             "shuffle without elementsize: it means the item size in Zarr v3 (netCDF-C), and 4 in v2; some readers "
             "differ", _REWRITE,
             Mend("document", "the item size is written; 4 in Zarr v2",
                  "these are the defaults of netCDF-C and zarr-python in v3, and of numcodecs in v2")),
        Code("netcdf-byte-order", "error",
             "big-endian by its dtype, but stored little-endian: netCDF-C 4.8.0 to 4.9.2; readers get wrong numbers",
             "look at the values, then correct the byte order in the dtype"),
        Code("nczarr-repaired", "warning",
             "netCDF-C's own metadata is broken or misleading; omnizarr.netcdf reads it correctly",
             "copy it with omnizarr.netcdf, which writes correct metadata"),
        Code("netcdf-short-fill", "note",
             "netCDF's default fill value of double with six digits: all versions of netCDF-C; in Zarr another number",
             "none needed"),
        Code("nczarr-members", "note", "members of NCZarr in .zarray or .zgroup: netCDF-C before 4.9.3", "none needed"),
        Code("byte-order-of-bytes", "warning", "a type of single bytes with a byte order: netCDF-C; some readers fail",
             _REWRITE,
             Mend("document", "`<u1` becomes `|u1`", "single bytes have no byte order")),
        Code("missing-byte-order", "warning", "a type without a byte order character: xtensor-zarr; some readers fail",
             _REWRITE,
             Mend("document", "`u1` becomes `|u1`", "single bytes have no byte order")),
        Code("bare-type-name", "note", "a data type by its name: TensorStore; other programs do not know it",
             "none needed"),
        Code("fixed-width-strings", "warning",
             "a fixed-width dtype for text in a codec of variable width: zarr-python 3.0; other programs fail",
             _REWRITE,
             Mend("document", "the dtype becomes `|O`", "the filter shows how the strings are stored")),
        Code("objects-without-codec", "error", "Python objects without a codec for them: no chunk can be read",
             "find out how they were written and add the filter"),
        Code("null-fill-value", "warning", "fill_value is null in Zarr v3: zarrita.js, NCZarr; some readers fail",
             _REWRITE,
             Mend("document", "the default of the data type is written", "readers use this default")),
        Code("empty-fill-value", "warning", 'fill_value is "" for numbers: NCZarr; most readers fail', _REWRITE,
             Mend("document", "the default of the data type is written", "readers use this default")),
        Code("fill-value-kind", "warning",
             "a fill value of the wrong JSON type for the data type, such as 0 for false; most readers fail",
             _REWRITE,
             Mend("document", "`0` becomes `false`", "zarr-python reads it like this")),
        Code("null-member", "warning",
             "null for a member that should be left out: zarrita of 2023; some readers fail", _REWRITE,
             Mend("document", "the member is removed", "null means the same")),
        Code("endian-codec", "warning", "codec endian, the name of bytes until August 2023; most readers fail",
             _REWRITE,
             Mend("document", "the name becomes `bytes`", "the codec was renamed in August 2023")),
        Code("missing-endian", "warning",
             "bytes without endian for items of several bytes: zarr-python; some readers fail", _REWRITE,
             Mend("document", '`"endian": "little"` is written', "writers that left it out wrote little-endian")),
        Code("missing-codecs", "warning",
             "no member codecs, although v3 requires it: GDAL, for chunks without compression; most readers fail",
             _REWRITE,
             Mend("document", "little-endian `bytes` is written", "GDAL reads its own chunks like this")),
        Code("codec-id", "warning",
             "the id of a codec in its configuration: zarr-python 3.0 with numcodecs 0.14; most readers fail", _REWRITE,
             Mend("document", "the id is removed", "it repeats the name of the codec")),
        Code("empty-codecs", "warning", "no codec at all: zarrita of 2023, zarrita.js; most readers fail", _REWRITE,
             Mend("document", "little-endian `bytes` is written",
                  "the specification of June 2023 defines this default")),
        Code("missing-serializer", "warning", "no array to bytes codec: zarrita of June 2023; most readers fail",
             _REWRITE,
             Mend("document", "little-endian `bytes` is written before the compressors",
                  "the specification of June 2023 defines this default")),
        Code("transpose-letter", "warning",
             "transpose with order C or F instead of axes: zarrita of 2023; most readers fail", _REWRITE,
             Mend("document", "the list of axes is written", "`C` means their order, `F` the reverse")),
        Code("missing-index-codecs", "warning",
             "a shard without index_codecs: specification of June 2023; most readers fail",
             _REWRITE,
             Mend("document", "little-endian `bytes` and `crc32c` are written",
                  "the specification of June 2023 defines this default")),
        Code("zero-chunk-length", "note", "chunk length 0 of a dimension without elements; some readers fail", _REWRITE,
             Mend("document", "`0` becomes `1`", "the dimension has no elements")),
        Code("codec-uri", "warning",
             "a codec's URI without its name: zarr-python before 2.17, which cannot read it either",
             _REWRITE,
             Mend("document", "the name is added to the URI", "no other codec has these parameters")),
        Code("hidden-filters", "warning",
             "filters among the attributes: zarr-python's 2020 draft; other programs read wrong values",
             "convert the array to another format"),
        Code("draft-scalar-key", "note", "the chunk of a scalar under c0 instead of c: zarr-python, GDAL", "rename it",
             Mend("key", "the chunk gets the key `c`",
                  "zarr-python and GDAL do not find the chunk under the key of the specification", asked=True)),
        Code("order-not-stored", "warning", "order F, but bytes in order C: zarr 1, if the codec is not blosc",
             "convert the array to another format"),
        Code("gzip-is-zlib", "note", "the name gzip for a zlib stream: zarr 1", "none needed"),
        Code("titled-field", "warning", "a field with a title or shape, which zarr 1 wrote and cannot read",
             "convert the array to another format"),
    ),
}  # fmt: skip
"""All kinds of findings, by the section of the manual."""

CODES: Final[Mapping[str, Code]] = {row.code: row for rows in SECTIONS.values() for row in rows}

MENDS: Final[Mapping[str, Mend]] = {code: row.mend for code, row in CODES.items() if row.mend is not None}
"""How each kind that can be repaired is repaired."""

RAISED_IF_STRICT: Final = frozenset(code for code, row in CODES.items() if row.raised_if_strict)
"""Notes that a strict check reports as warnings."""

REPAIRABLE: Final = frozenset(code for code, mend in MENDS.items() if not mend.guesses)
"""Kinds that can be repaired without guessing."""
