"""Files that are damaged or made to deceive, and paths that are no files: each is refused in words.

One table of files, with the whole reason each is refused for; one of calls. The last tests hold that
the tables reach every `raise` of the storage modules, and that refusing is quick and takes no more
memory than the file's size warrants.
"""

import json
import os
import re
import tempfile
import tracemalloc
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tnsum
from fuzz_storage import fuzz, put_together, saved, taken_apart
from raising import unreached
from test_storage_paths import (
    CALLS,
    INSIDE,
    assert_raises,
    cut_while_read,
    header_too_large,
    in_words,
    no_right_to_write,
    within,
)
from tnsum import (
    Network,
    NetworkError,
    NetworkStack,
    Topology,
    _packing,
    _replacing,
    _tensor_files,
    _unpacking,
    storage,
)

MODULES = (storage, _packing, _unpacking, _replacing, _tensor_files)

MOST = 2**24
DTYPES = "('float32', 'float64', 'complex64', 'complex128')"

x = Network({"A": (np.arange(6.0).reshape(2, 3), ("i", "r")), "B": (np.ones((3, 2)), ("r", "j"))})
wide = Network({"A": (np.ones((2, 1)), ("i", "r")), "B": (np.ones((1, 2)), ("r", "j"))})
stack = NetworkStack.from_networks([x, x])
mixed = x + 2 * wide + stack.sum().astype("float32")
# Waiting for the disk once for each network is enough.
file_of = cache(saved)
whole = file_of(x)
of_complex = x.astype("complex128")

Change = Callable[[dict[str, Any], dict[str, Any]], Any]
Reason = str | re.Pattern[str]


def changed(change: Change, of: Any = x, data: Callable[[bytes], bytes] = bytes) -> bytes:
    """The file of `of` after a change to its header and description, both as plain values."""
    header, rest = taken_apart(file_of(of))
    description = json.loads(header["__metadata__"]["tnsum"])
    change(header, description)
    if "tnsum" in header.get("__metadata__", {}):
        header["__metadata__"]["tnsum"] = json.dumps(description)
    return put_together(header, data(rest))


def entry(of: Any = x, name: str = "0/A", **new: Any) -> bytes:
    """The file with other values in a tensor's entry."""
    return changed(lambda header, _: header[name].update(new), of)


def described(of: Any = x, **new: Any) -> bytes:
    """The file with other values in its description."""
    return changed(lambda _, description: description.update(new), of)


def description_text(text: str) -> bytes:
    """The file with this text as its description."""
    header, rest = taken_apart(whole)
    header["__metadata__"]["tnsum"] = text
    return put_together(header, rest)


def without(key: str, of: Any = x) -> bytes:
    """The file without a key of its description."""
    return changed(lambda _, description: description.pop(key), of)


def without_tensor(name: str, of: Any = x) -> bytes:
    """The file without its last tensor, nor the data of it."""
    header, rest = taken_apart(file_of(of))
    begin, _ = header.pop(name)["data_offsets"]
    return put_together(header, rest[:begin])


def with_tensor(name: str) -> bytes:
    """The file with a tensor that nothing asks for."""
    n = len(taken_apart(whole)[1])
    extra = {"dtype": "F64", "shape": [1], "data_offsets": [n, n + 8]}
    return changed(lambda header, _: header.update({name: extra}), x, lambda rest: rest + bytes(8))


def doubled(old: str, new: str) -> bytes:
    """The file with a text of its header replaced."""
    header, rest = taken_apart(whole)
    text = json.dumps(header, separators=(",", ":"))
    assert old in text
    return put_together(text.replace(old, new, 1).encode(), rest)


def nodes(*held: Any) -> bytes:
    return described(nodes=[{"name": name, "modes": modes} for name, modes in held])


def deep(n: int) -> str:
    return "[" * n + "]" * n


NOT_JSON = "is not valid JSON"
TOO_LARGE = (f"more than the {MOST} that are allowed: it is no safetensors file, or not one of "
             f"tnsum's")  # fmt: skip
CUT = "follow: the file was cut, or is no safetensors file"
NODES = ("its description must list nodes, each with name and modes, and physical_modes, all of them "
         "texts")  # fmt: skip
PARTS = f"its description must list parts, each with stacked and a dtype of {DTYPES}"
ENTRY = "tensor '0/A' must have dtype, shape and data_offsets, and nothing else"
SHAPE = "tensor '0/A' must have a shape of at most 64 sizes below 2**63; {} came"
OFFSETS = "tensor '0/A' must have two data_offsets below 2**63; {} came"
APART = "tensor '0/A' of dtype F64 and shape {} takes {} bytes; its data_offsets {} are {} apart"
DTYPE = "tensor '0/A' must be of dtype ('F32', 'F64'); {} came"
VERSION = "its format version must be a positive integer; {} came"
KIND = "it must hold one of ('network', 'stack', 'sum', 'accumulator'); {} came"
NOT_OURS = ("it is a safetensors file that tnsum did not write. Read it with the safetensors package "
            "and make a network with tnsum.interop.from_state_dict.")  # fmt: skip
ONE_AXIS = (
    "Node 'A' must have one axis per mode{}: it has modes ('i', 'r') and an array of shape {}."
)


def number(text: bytes) -> str:
    """The first eight bytes of a text as the length of a header."""
    return f"its header would have {int.from_bytes(text[:8], 'little')} bytes, {TOO_LARGE}"


FOREIGN = {
    "zip": b"PK\x03\x04\x14\x00\x00\x00\x08\x00rest of it",
    "npy": b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (1,)}",
    "png": b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
    "text": b"A network is nodes.\n",
    "JSON": b'{"version": 1}',
    "pickle": b"\x80\x04\x95\x1a\x00\x00\x00\x00\x00\x00\x00\x8c\x08builtins",
}  # fmt: skip

CONTAINER: dict[str, tuple[bytes, Reason]] = {
    "empty": (b"", "it has 0 bytes, too few for a safetensors file"),
    "nine bytes": (bytes(9), "it has 9 bytes, too few for a safetensors file"),
    **{name: (data, number(data)) for name, data in FOREIGN.items()},
    "all zeros": (bytes(100), f"its header {NOT_JSON} (Expecting value: line 1 column 1 (char 0))"),
    "length 2**63": ((2**63).to_bytes(8, "little") + whole[8:],
                     f"its header would have {2**63} bytes, {TOO_LARGE}"),
    "length 2**64 - 1": (b"\xff" * 8 + whole[8:],
                         f"its header would have {2**64 - 1} bytes, {TOO_LARGE}"),
    "length above the limit": ((MOST + 1).to_bytes(8, "little") + whole[8:],
                               f"its header would have {MOST + 1} bytes, {TOO_LARGE}"),
    "length above the file's": ((len(whole) - 7).to_bytes(8, "little") + whole[8:],
                                f"its header should have {len(whole) - 7} bytes, but only "
                                f"{len(whole) - 8} {CUT}"),
    "length one less": (put_together(b"{}  "[:3], b""), NOT_OURS),
    "not JSON": (put_together(b"{'a': 1}"), f"its header {NOT_JSON} (Expecting property name enclosed "
                 "in double quotes: line 1 column 2 (char 1))"),
    "two values": (put_together(b"{} {}"), f"its header {NOT_JSON} (Extra data: line 1 column 4 "
                   "(char 3))"),
    "not UTF-8": (put_together(b'{"\xff": 1}'), f"its header {NOT_JSON} ('utf-8' codec can't decode "
                  "byte 0xff in position 2: invalid start byte)"),
    "UTF-16": (put_together("{}".encode("utf-16")), f"its header {NOT_JSON} ('utf-8' codec can't "
               "decode byte 0xff in position 0: invalid start byte)"),
    "byte order mark": (put_together("\ufeff{}".encode()), re.compile(
        r"its header is not valid JSON \(Unexpected UTF-8 BOM .*\)")),
    "zero byte": (put_together(b'{"a\x00": 1}'), f"its header {NOT_JSON} (Invalid control character "
                  "at: line 1 column 4 (char 3))"),
    "NaN": (put_together(b'{"a": NaN}'), "its header holds NaN, which is not JSON"),
    "Infinity": (put_together(b'{"a": -Infinity}'), "its header holds -Infinity, which is not JSON"),
    "deep": (put_together(deep(100_000).encode()), f"its header {NOT_JSON} (too deep)"),
    "deep objects": (put_together(b'{"":' * 100_000), f"its header {NOT_JSON} (too deep)"),
    "10000 digits": (put_together(b'{"a": ' + b"1" * 10_000 + b"}"), re.compile(
        r"its header is not valid JSON \(Exceeds the limit \(4300.*\)")),
    "list": (put_together(b"[]"), "its header must be a JSON object; list came"),
    "number": (put_together(b"12"), "its header must be a JSON object; int came"),
    "text": (put_together(b'"{}"'), "its header must be a JSON object; str came"),
    "null": (put_together(b"null"), "its header must be a JSON object; NoneType came"),
    "doubled tensor": (doubled('"0/B":', '"0/A":'), "its header names '0/A' twice"),
    "doubled, written otherwise": (doubled('"0/B":', r'"0\/\u0041":'), "its header names '0/A' twice"),
    "doubled metadata": (doubled('{"__metadata__"', '{"__metadata__":{},"__metadata__"'),
                         "its header names '__metadata__' twice"),
    "doubled shape": (doubled('"shape":', '"shape":[1],"shape":'), "its header names 'shape' twice"),
    "doubled kind": (doubled(r'\"kind\":', r'\"kind\":1,\"kind\":'),
                     "its description names 'kind' twice"),
    "doubled long name": (put_together(f'{{"{"a" * 200}":1,"{"a" * 200}":2}}'.encode()),
                          f"its header names {'a' * 80!r} twice"),
    "metadata a list": (put_together({"__metadata__": ["tnsum"]}),
                        "__metadata__ of its header must map strings to strings"),
    "metadata of numbers": (changed(lambda header, _: header["__metadata__"].update(n=1)),
                            "__metadata__ of its header must map strings to strings"),
    "metadata null": (put_together({"__metadata__": None}),
                      "__metadata__ of its header must map strings to strings"),
    "no metadata": (changed(lambda header, _: header.pop("__metadata__")), NOT_OURS),
    "no description": (changed(lambda header, _: header["__metadata__"].pop("tnsum")), NOT_OURS),
    "another program's": (put_together({"__metadata__": {"format": "pt"}}), NOT_OURS),
    "empty header": (put_together({}), NOT_OURS),
}  # fmt: skip

ENTRIES: dict[str, tuple[bytes, Reason]] = {
    "entry a list": (changed(lambda header, _: header.update({"0/A": []})), ENTRY),
    "entry null": (changed(lambda header, _: header.update({"0/A": None})), ENTRY),
    "no dtype": (changed(lambda header, _: header["0/A"].pop("dtype")), ENTRY),
    "no offsets": (changed(lambda header, _: header["0/A"].pop("data_offsets")), ENTRY),
    "one key more": (entry(strides=[3, 1]), ENTRY),
    "F16": (entry(dtype="F16"), DTYPE.format("'F16'")),
    "I64": (entry(dtype="I64"), DTYPE.format("'I64'")),
    "unknown dtype": (entry(dtype="float64"), DTYPE.format("'float64'")),
    "dtype a number": (entry(dtype=64), DTYPE.format("64")),
    "dtype a list": (entry(dtype=["F64"]), DTYPE.format("['F64']")),
    "shape a number": (entry(shape=6), SHAPE.format(6)),
    "shape a text": (entry(shape="23"), SHAPE.format("'23'")),
    "negative size": (entry(shape=[-2, -3]), SHAPE.format([-2, -3])),
    "size a float": (entry(shape=[2.0, 3]), SHAPE.format([2.0, 3])),
    "size true": (entry(shape=[True, 6]), SHAPE.format([True, 6])),
    "size 2**63": (entry(shape=[2**63, 0]), SHAPE.format([2**63, 0])),
    "65 axes": (entry(shape=[1] * 65), SHAPE.format(f"{repr([1] * 65)[:77]}...")),
    "offsets a number": (entry(data_offsets=48), OFFSETS.format(48)),
    "one offset": (entry(data_offsets=[48]), OFFSETS.format([48])),
    "three offsets": (entry(data_offsets=[0, 24, 48]), OFFSETS.format([0, 24, 48])),
    "negative offsets": (entry(data_offsets=[-48, 0]), OFFSETS.format([-48, 0])),
    "offset a float": (entry(data_offsets=[0, 48.0]), OFFSETS.format([0, 48.0])),
    "offset false": (entry(data_offsets=[False, 48]), OFFSETS.format([False, 48])),
    "offset 2**63": (entry(data_offsets=[2**63, 2**63 + 48]), OFFSETS.format([2**63, 2**63 + 48])),
    "offsets 2**64": (entry(data_offsets=[2**64, 2**64 + 48]), OFFSETS.format([2**64, 2**64 + 48])),
    "offsets exchanged": (entry(data_offsets=[48, 0]), APART.format([2, 3], 48, [48, 0], -48)),
    "too short": (entry(data_offsets=[0, 40]), APART.format([2, 3], 48, [0, 40], 40)),
    "shape too large": (entry(shape=[2, 4]), APART.format([2, 4], 64, [0, 48], 48)),
    "shape too small": (entry(shape=[2, 2]), APART.format([2, 2], 32, [0, 48], 48)),
    # 2**61 * 24 + 6 numbers of 8 bytes are 48 bytes, if 64 bits are all that one has.
    "shape that wraps": (entry(shape=[2, 3 + 2**60]),
                         APART.format([2, 3 + 2**60], 48 + 2**64, [0, 48], 48)),
    "shape that wraps twice": (entry(shape=[2**32, 2**32, 3, 2]),
                               APART.format([2**32, 2**32, 3, 2], 48 * 2**64, [0, 48], 48)),
    "shape that wraps to zero": (entry(shape=[2**61, 8], data_offsets=[0, 0]),
                                 APART.format([2**61, 8], 2**67, [0, 0], 0)),
    "beyond the end": (entry(name="0/B", data_offsets=[96, 144]),
                       "the data of tensor '0/B' leave a gap before them: they begin at byte 96, the "
                       "ones before end at 48"),
    "far beyond the end": (entry(name="0/B", data_offsets=[2**62, 2**62 + 48]),
                           "the data of tensor '0/B' leave a gap before them: they begin at byte "
                           f"{2**62}, the ones before end at 48"),
    "last too long": (entry(name="0/B", shape=[3, 4], data_offsets=[48, 144]),
                      "its header asks for 144 bytes of data, 96 are there: it was cut"),
    "overlapping": (entry(name="0/B", data_offsets=[8, 56]),
                    "the data of tensor '0/B' overlap those before them: they begin at byte 8, the "
                    "ones before end at 48"),
    "the same data": (entry(name="0/B", data_offsets=[0, 48]),
                      "the data of tensor '0/B' overlap those before them: they begin at byte 0, the "
                      "ones before end at 48"),
    "gap at the start": (changed(lambda header, _: [header[name].update(data_offsets=[at, at + 48])
                                                    for name, at in (("0/A", 8), ("0/B", 56))],
                                 x, lambda rest: bytes(8) + rest),
                         "the data of tensor '0/A' leave a gap before them: they begin at byte 8, the "
                         "ones before end at 0"),
    "cut": (whole[:-1], "its header asks for 96 bytes of data, 95 are there: it was cut"),
    "appended": (whole + b"\0",
                 "its header asks for 96 bytes of data, 97 are there: it has something appended"),
    "no tensors": (changed(lambda header, _: [header.pop("0/A"), header.pop("0/B")]),
                   "its header asks for 0 bytes of data, 96 are there: it has something appended"),
}  # fmt: skip

DESCRIPTION: dict[str, tuple[bytes, Reason]] = {
    "no text": (description_text(""), f"its description {NOT_JSON} (Expecting value: line 1 column 1 "
                "(char 0))"),
    "not JSON": (description_text("{version: 1}"), f"its description {NOT_JSON} (Expecting property "
                 "name enclosed in double quotes: line 1 column 2 (char 1))"),
    "deep": (description_text(deep(100_000)), f"its description {NOT_JSON} (too deep)"),
    "list": (description_text("[]"), "its description must be a JSON object"),
    "null": (description_text("null"), "its description must be a JSON object"),
    "empty": (description_text("{}"), VERSION.format(None)),
    "NaN": (description_text('{"version": NaN}'), "its description holds NaN, which is not JSON"),
    "newer": (described(version=2),
              "it has format version 2, this tnsum reads up to 1. Install a newer tnsum."),
    "much newer": (described(version=10**4000), re.compile(
        r"it has format version 10{900,}\.\.\.")),
    "version 0": (described(version=0), VERSION.format(0)),
    "version -1": (described(version=-1), VERSION.format(-1)),
    "version true": (described(version=True), VERSION.format(True)),
    "version text": (described(version="1"), VERSION.format("'1'")),
    "version 1.0": (described(version=1.0), VERSION.format(1.0)),
    "version long": (described(version="1" * 100), VERSION.format(f"'{'1' * 76}...")),
    "no kind": (without("kind"), KIND.format(None)),
    "unknown kind": (described(kind="Network"), KIND.format("'Network'")),
    "kind a list": (described(kind=["network"]), KIND.format("['network']")),
    "kind of fusion": (
        described(kind="classifier"),
        "it holds a classifier. Read it with tnsum.fusion.load_classifier",
    ),
    "no nodes": (without("nodes"), NODES),
    "nodes an object": (described(nodes={"A": ["i", "r"], "B": ["r", "j"]}), NODES),
    "node a list": (described(nodes=[["A", ["i", "r"]]]), NODES),
    "node without modes": (described(nodes=[{"name": "A"}]), NODES),
    "node with more": (described(nodes=[{"name": "A", "modes": [], "color": "red"}]), NODES),
    "name a number": (nodes((1, ["i", "r"]), ("B", ["r", "j"])), NODES),
    "name a list": (nodes((["A"], ["i", "r"]), ("B", ["r", "j"])), NODES),
    "modes a text": (nodes(("A", "ir"), ("B", ["r", "j"])), NODES),
    "mode a number": (nodes(("A", ["i", 0]), ("B", ["r", "j"])), NODES),
    "mode a list": (nodes(("A", ["i", ["r"]]), ("B", ["r", "j"])), NODES),
    "physical modes a text": (described(physical_modes="ij"), NODES),
    "no physical modes": (without("physical_modes"), NODES),
    "physical mode null": (described(physical_modes=["i", None]), NODES),
    "half a pair": (nodes(("A", ["i", "\ud800"]), ("B", ["\ud800", "j"])), NODES),
    "half a pair as a name": (nodes(("\udfff", ["i", "r"]), ("B", ["r", "j"])), NODES),
    "half a pair, physical": (described(physical_modes=["\udc00"]), NODES),
    "no node": (described(nodes=[], physical_modes=[]),
                "A network must have at least one node; none came."),
    "node twice": (nodes(("A", ["i", "r"]), ("A", ["r", "j"])), "its description names a node twice"),
    "unknown physical mode": (described(physical_modes=["i", "k"]),
                              "A physical mode must be held by a node; none holds 'k'. The nodes hold "
                              "('i', 'r', 'j')."),
    "repeated physical mode": (described(physical_modes=["i", "i"]),
                               "A physical mode must be named once; 'i' came twice."),
    "no parts": (without("parts"), PARTS),
    "parts an object": (described(parts={"dtype": "float64", "stacked": False}), PARTS),
    "part a text": (described(parts=["float64"]), PARTS),
    "part without stacked": (described(parts=[{"dtype": "float64"}]), PARTS),
    "part with more": (described(parts=[{"dtype": "float64", "stacked": False, "n": 1}]), PARTS),
    "part of int64": (described(parts=[{"dtype": "int64", "stacked": False}]), PARTS),
    "part of a list": (described(parts=[{"dtype": ["float64"], "stacked": False}]), PARTS),
    "part of an object": (described(parts=[{"dtype": {}, "stacked": False}]), PARTS),
    "stacked a number": (described(parts=[{"dtype": "float64", "stacked": 0}]), PARTS),
    "parts empty": (described(parts=[]), "a network must have one part, with stacked False; [] came"),
    "parts of a sum empty": (described(x + x, parts=[]), "a sum must have a part at least; [] came"),
    "a single network stacked": (described(parts=[{"dtype": "float64", "stacked": True}]),
                                 "a network must have one part, with stacked False; [{'dtype': "
                                 "'float64', 'stacked': True}] came"),
    "order a number": (described(x + x, order=1), "order must name the places 0 ... 1, each once"),
    "order short": (described(x + x, order=[0]), "order must name the places 0 ... 1, each once"),
    "order doubled": (described(x + x, order=[1, 1]), "order must name the places 0 ... 1, each once"),
    "order of bools": (described(x + x, order=[True, False]),
                       "order must name the places 0 ... 1, each once"),
    "order of texts": (described(x + x, order=["0", "1"]),
                       "order must name the places 0 ... 1, each once"),
    "two parts of a network": (described(parts=[{"dtype": "float64", "stacked": False}] * 2),
                               re.compile("a network must have one part, with stacked False; .*")),
    "two parts of a stack": (described(stack, parts=[{"dtype": "float64", "stacked": True}] * 2),
                             re.compile("a stack must have one part, with stacked True; .*")),
}  # fmt: skip

SINGLE = [{"dtype": "float64", "stacked": False}]
STACKED = [{"dtype": "float64", "stacked": True}]

MEANING: dict[str, tuple[bytes, Reason]] = {
    "missing tensor": (without_tensor("0/B"), "tensor '0/B' is missing"),
    "renamed node": (nodes(("A", ["i", "r"]), ("C", ["r", "j"])), "tensor '0/C' is missing"),
    "long name": (nodes(("A" * 99, ["i", "r"]), ("C", ["r", "j"])),
                  f"tensor '0/{'A' * 78}' is missing"),
    "missing part": (described(x + x, parts=[{"dtype": "float64", "stacked": False}] * 2),
                     "tensor '1/A' is missing"),
    "missing node": (nodes(("A", ["i", "j"])), "it has 2 tensors, but its description needs 1"),
    "extra tensor": (with_tensor("extra"), "it has 3 tensors, but its description needs 2"),
    "extra part": (with_tensor("1/A"), "it has 3 tensors, but its description needs 2"),
    "weights of a network": (with_tensor("weights"), "it has 3 tensors, but its description needs 2"),
    "forgotten part": (described(mixed, parts=[{"dtype": "float64", "stacked": False}]),
                       "it has 7 tensors, but its description needs 3"),
    "a mode less": (nodes(("A", ["i"]), ("B", ["i", "j"])),
                    "Node 'A' must have one axis per mode: it has modes ('i',) and an array of shape "
                    "(2, 3)."),
    "a mode more": (nodes(("A", ["i", "r", "s"]), ("B", ["r", "j"])),
                    "Node 'A' must have one axis per mode: it has modes ('i', 'r', 's') and an array "
                    "of shape (2, 3)."),
    "an axis less": (entry(shape=[6]), ONE_AXIS.format("", "(6,)")),
    "an axis more": (entry(shape=[2, 3, 1]), ONE_AXIS.format("", "(2, 3, 1)")),
    "64 axes": (entry(shape=[*[1] * 62, 2, 3]), re.compile(
        r"Node 'A' must have one axis per mode: it has modes \('i', 'r'\) and an array of shape "
        r"\(1, .*, 2, 3\)\.")),
    "61 modes": (changed(lambda header, description: [
        header["0/A"].update(shape=[*[1] * 59, 2, 3]),
        description.update(nodes=[{"name": "A", "modes": [*(f"i{k}" for k in range(60)), "r"]},
                                  {"name": "B", "modes": ["r", "j"]}], physical_modes=[])]),
                 "A node must have at most 60 modes; node 'A' has 61. Split it, or leave out modes of "
                 "size one."),
    "two sizes": (entry(shape=[3, 2]),
                  "Mode 'r' must have one size: 3 at axis 0 of node 'B' with shape (3, 2), 2 at axis 1 "
                  "of node 'A' with shape (3, 2)."),
    "stack as network": (described(stack, kind="network", parts=SINGLE),
                         ONE_AXIS.format("", "(2, 2, 3)")),
    "network as stack": (described(kind="stack", parts=STACKED),
                         ONE_AXIS.format(" after the leading axis of the stack", "(2, 3)")),
    "stacks of two lengths": (entry(stack, shape=[1, 4, 3]),
                              "The leading axis must count the same networks in every node: 2 at axis "
                              "0 of node 'B' with shape (2, 3, 2), 1 at axis 0 of node 'A' with shape "
                              "(1, 4, 3)."),
    "empty node": (changed(lambda header, _: [
        header["0/A"].update(shape=[0, 3], data_offsets=[0, 0]),
        header["0/B"].update(data_offsets=[0, 48])], x, lambda rest: rest[:48]),
                   "Node 'A' must not be empty; its array has shape (0, 3)."),
    "empty and enormous": (changed(lambda header, _: [
        header["0/A"].update(shape=[0, 2**62], data_offsets=[0, 0]),
        header["0/B"].update(data_offsets=[0, 48])], x, lambda rest: rest[:48]),
                           f"Node 'A' must not be empty; its array has shape (0, {2**62})."),
    "wrong dtype": (described(parts=[{"dtype": "float32", "stacked": False}]),
                    "tensor '0/A' must be of F32, to hold float32; F64 of shape (2, 3) came"),
    "pairs missing": (described(parts=[{"dtype": "complex128", "stacked": False}]),
                      "tensor '0/A' must be of F64 with a last axis of size 2, to hold complex128; F64 "
                      "of shape (2, 3) came"),
    "no axis at all": (changed(lambda header, description: [
        header["0/A"].update(shape=[], data_offsets=[0, 8]),
        header["0/B"].update(data_offsets=[8, 56]),
        description.update(parts=[{"dtype": "complex128", "stacked": False}])],
                               x, lambda rest: rest[:56]),
                       "tensor '0/A' must be of F64 with a last axis of size 2, to hold complex128; F64 "
                       "of shape () came"),
    "triples": (entry(of_complex, shape=[2, 2, 3]),
                "tensor '0/A' must be of F64 with a last axis of size 2, to hold complex128; F64 of "
                "shape (2, 2, 3) came"),
    "complex as real": (described(of_complex, parts=[{"dtype": "float64", "stacked": False}]),
                        ONE_AXIS.format("", "(2, 3, 2)")),
    "complex64 as complex128": (described(x.astype("complex64"),
                                          parts=[{"dtype": "complex128", "stacked": False}]),
                                "tensor '0/A' must be of F64 with a last axis of size 2, to hold "
                                "complex128; F32 of shape (2, 3, 2) came"),
    "no weights": (without_tensor("weights", x + x), "it has 2 tensors, but its description needs 3"),
    "weights under another name": (changed(lambda header, _: header.update(
        Weights=header.pop("weights")), x + x), "tensor 'weights' is missing"),
    "weights not described": (without("weights", x + x),
                              "weights must be float64 or complex128; None came"),
    "weights of float32": (described(x + x, weights="float32"),
                           "weights must be float64 or complex128; 'float32' came"),
    "weights of a list": (described(x + x, weights=["float64"]),
                          "weights must be float64 or complex128; ['float64'] came"),
    "weights not pairs": (described(mixed, weights="complex128"),
                          "tensor 'weights' must be of F64 with a last axis of size 2, to hold "
                          "complex128; F64 of shape (4,) came"),
    "too few weights": (changed(lambda header, _: header["weights"].update(
        shape=[1], data_offsets=[192, 200]), x + x, lambda rest: rest[:-8]),
                        "there must be 2 weights, one per summand; shape (1,) came"),
    "weights a matrix": (entry(x + x, "weights", shape=[1, 2]),
                         "there must be 2 weights, one per summand; shape (1, 2) came"),
    "a weight without axis": (changed(lambda header, _: header["weights"].update(
        shape=[], data_offsets=[192, 200]), x + x, lambda rest: rest[:-8]),
                              "there must be 2 weights, one per summand; shape () came"),
    "weights as pairs": (changed(lambda header, description: [
        header["weights"].update(shape=[1, 2]), description.update(weights="complex128")], x + x),
                         "there must be 2 weights, one per summand; shape (1,) came"),
    "parts of two shapes": (changed(lambda header, _: [
        header["1/A"].update(shape=[1, 1, 2]), header["1/B"].update(shape=[1, 2, 1])], mixed),
                            "the parts of a sum must have one shape: part 1 has (1, 1), part 0 (2, 2)"),
}  # fmt: skip

FILES = {
    f"{table}: {name}": row
    for table, rows in {
        "container": CONTAINER, "entries": ENTRIES, "description": DESCRIPTION, "meaning": MEANING,
    }.items()
    for name, row in rows.items()
}  # fmt: skip


@pytest.mark.parametrize(("data", "reason"), FILES.values(), ids=FILES)
def test_a_bad_file_is_refused_in_words(data: bytes, reason: Reason, tmp_path: Path) -> None:
    path = tmp_path / "bad"
    path.write_bytes(data)
    message = in_words(path, "loaded", reason)
    assert_raises(lambda: tnsum.load(path), message)
    assert_raises(lambda: tnsum.load(path, memory_map=False), message)
    with pytest.raises(NetworkError):
        tnsum.load(path, nodes=["A"])
    # What is refused can be replaced.
    tnsum.save(path, x)
    assert tnsum.load(path).topology == x.topology


@pytest.mark.parametrize("of", [x, x.astype("complex64"), stack, mixed, mixed * 1j])
def test_a_file_that_was_cut_anywhere_is_refused(of: Any, tmp_path: Path) -> None:
    data = saved(of)
    path = tmp_path / "cut"
    path.write_bytes(data)
    for n in reversed(range(len(data))):
        os.truncate(path, n)
        with pytest.raises(NetworkError, match=re.escape(f"{str(path)!r} cannot be loaded: it")):
            tnsum.load(path, memory_map=n % 2 == 0)


def test_the_files_that_are_changed_are_right() -> None:
    """Each row above differs from a right file in what its name says, and in nothing else."""
    unchanged = changed(lambda *_: None)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "right"
        for data in (whole, unchanged, described(), entry(), doubled('"0/B":', r'"0\/\u0042":')):
            path.write_bytes(data)
            assert np.array_equal(tnsum.load(path).contract(), x.contract())
        # What a later version may add does not disturb.
        path.write_bytes(changed(lambda header, d: [header["__metadata__"].update(author="A"),
                                                    d.update(comment=[1])]))  # fmt: skip
        assert np.array_equal(tnsum.load(path).contract(), x.contract())


# all of it


def of_two_dtypes() -> Network:
    """What a transformation of JAX may leave behind: it checks nothing."""
    return Network._unchecked(x.topology, {**x.arrays, "B": x.arrays["B"].astype("float32")})


def test_what_does_not_fit_together_is_not_saved(tmp_path: Path) -> None:
    path = tmp_path / "x"
    tnsum.save(path, x)
    small = Network._unchecked(x.topology, {**x.arrays, "B": x.arrays["B"][:1]})
    for wrong, fault in [
        (of_two_dtypes(), "all nodes must be of one dtype; 'B' is of another than the others"),
        (small + small, "Mode 'r' must have one size: "),
    ]:
        with pytest.raises(NetworkError) as raised:
            tnsum.save(path, wrong)
        assert str(raised.value).startswith(f"{str(path)!r} cannot be saved: {fault}")
    assert os.listdir(tmp_path) == ["x"]
    assert tnsum.load(path).n_parameters == x.n_parameters


def test_every_raise_is_in_the_tables(tmp_path: Path) -> None:
    folder, bad = tmp_path, tmp_path / "bad"
    tnsum.save(folder / "x", x)

    def refused(data: bytes) -> Callable[[], Any]:
        def call() -> None:
            bad.write_bytes(data)
            tnsum.load(bad)

        return call

    calls: list[Callable[[], Any]] = [refused(data) for data, _ in FILES.values()]
    calls += [lambda call=call: call(folder) for call, _ in CALLS.values()]  # type: ignore[misc]
    calls += [lambda call=call: call(folder / "x") for call, *_ in INSIDE.values()]  # type: ignore[misc]
    calls += [lambda: tnsum.load(folder), lambda: tnsum.save(folder, x)]
    calls.append(lambda: tnsum.save(folder / "x", of_two_dtypes()))
    calls += [lambda: tnsum.save(f"{folder}/", x), lambda: tnsum.save("/proc/self/exe", x)]
    for function in (no_right_to_write, header_too_large, cut_while_read):
        calls.append(lambda function=function: function(folder / "x"))  # type: ignore[misc]
    files = [Path(str(module.__file__)) for module in MODULES]
    assert not unreached(files, [calls[0], *map(causes, calls)]), "no row reaches these lines"


def causes(call: Callable[[], Any]) -> Callable[[], None]:
    """A call that raises what lies behind the error that names the file."""

    def inner() -> None:
        try:
            call()
        except NetworkError as error:
            raise (error.__cause__ or error) from None

    return inner


def many_keys(n: int) -> bytes:
    keys = ",".join(f'"{k}":0' for k in range(n))
    return put_together(f'{{{keys},"{n - 1}":0}}'.encode())


def many_tensors(n: int) -> bytes:
    entries = {f"{k}": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]} for k in range(n)}
    metadata = {"__metadata__": {"tnsum": json.dumps({"version": 1})}}
    return put_together({**metadata, **entries}, bytes(8))


def many_parts(n: int) -> bytes:
    nodes = [{"name": f"{k}", "modes": [f"{k}"]} for k in range(n)]
    parts = [{"dtype": "float64", "stacked": True}] * n
    return described(x + x, nodes=nodes, physical_modes=[], parts=parts)


def many_nodes(n: int, physical: str) -> bytes:
    nodes = [{"name": f"{k}", "modes": ["r"]} for k in range(n)]
    document = {"version": 1, "kind": "network", "nodes": nodes, "physical_modes": [physical],
                "parts": [{"dtype": "float64", "stacked": False}]}  # fmt: skip
    entries = {f"0/{k}": {"dtype": "F64", "shape": [1], "data_offsets": [8 * k, 8 * k + 8]}
               for k in range(n)}  # fmt: skip
    return put_together({"__metadata__": {"tnsum": json.dumps(document)}, **entries}, bytes(8 * n))


LARGE: dict[str, Callable[[], bytes]] = {
    "many keys, the last one doubled": lambda: many_keys(100_000),
    "many keys, all alike": lambda: put_together(b"{" + b",".join([b'"a":0'] * 100_000) + b"}"),
    "empty lists": lambda: put_together(b"[" + b",".join([b"[]"] * 200_000) + b"]"),
    "small objects": lambda: put_together(b"[" + b",".join([b'{"":0}'] * 100_000) + b"]"),
    "a wide character": lambda: put_together('"\U0001f600'.encode() + b"a" * 10**6 + b'"'),
    "a long fraction": lambda: put_together(b'{"a": 0.' + b"1" * 10**6 + b"}"),
    "a long name": lambda: nodes(("A" * 10**6, ["i", "r"]), ("B", ["r", "j"])),
    "a long mode": lambda: nodes(("A", ["i" * 10**6, "r", "s"]), ("B", ["r", "j"])),
    "many modes": lambda: nodes(("A", ["i"] * 100_000), ("B", ["r", "j"])),
    "many tensors that overlap": lambda: many_tensors(10_000),
    "many parts of many nodes": lambda: many_parts(10_000),
    "many nodes": lambda: many_nodes(10_000, "unknown"),
    "deep": lambda: put_together(deep(2 * 10**6).encode()),
    "lies about its size": lambda: entry(shape=[2**40], data_offsets=[0, 2**43]),
    "lies about its header": lambda: MOST.to_bytes(8, "little") + bytes(4096),
}


@pytest.mark.parametrize("build", LARGE.values(), ids=LARGE)
def test_refusing_is_quick_and_takes_little_memory(
    build: Callable[[], bytes], tmp_path: Path
) -> None:
    data = build()
    path = tmp_path / "bad"
    path.write_bytes(data)
    tracemalloc.start()
    try:
        # Most take a tenth of a second, and minutes or hours if something is quadratic.
        with pytest.raises(NetworkError) as raised, within(60):
            tnsum.load(path)
        assert tracemalloc.get_traced_memory()[1] < 100 * len(data) + 2**22
    finally:
        tracemalloc.stop()
    assert len(str(raised.value)) < 1200


def test_some_nodes_of_many_are_found_quickly() -> None:
    n = 50_000
    chain = Topology({f"{k}": (f"r{k}", f"r{k + 1}") for k in range(n)})
    with within(20):
        chosen = _unpacking._checked_wanted([f"{k}" for k in range(0, n, 2)], chain)
        alone = _unpacking._alone(chain, chosen)
    assert len(alone.nodes) == len(chosen) == n // 2
    assert alone.order == n


def test_a_short_run_of_the_fuzzer(tmp_path: Path) -> None:
    counts = fuzz(range(2000), 1, tmp_path)
    n_loaded = sum(n for (_, found), n in counts.items() if found == "loaded")
    assert counts.total() == 2000
    assert 100 < n_loaded < 500
