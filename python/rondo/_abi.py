# SPDX-License-Identifier: BSD-3-Clause
"""What headers in include/rondo declare, for ctypes. Made by python/make_abi.py: change a header, then run that."""
from ctypes import (CFUNCTYPE, Structure, c_char_p, c_double, c_int, c_size_t, c_ubyte, c_uint, c_uint64,
                    c_void_p)
from enum import IntEnum

HEADER_VERSION = (0, 1, 0)
ANY_SOURCE = -1
ANY_TAG = -1
CONFIG_INIT = (-1, None, 0, 0, -1.0, -1, None, 0, 0, 0, -1, -1)


class Result(IntEnum):
    OK = 0
    IN_PROGRESS = 1
    ERROR_INVALID = 2
    ERROR_MISMATCH = 3
    ERROR_PEER = 4
    ERROR_TIMEOUT = 5
    ERROR_ABORTED = 6
    ERROR_MEMORY = 7
    ERROR_SYSTEM = 8
    ERROR_AUTH = 9
    ERROR_UNSUPPORTED = 10
    ERROR_INTERNAL = 11


class Type(IntEnum):
    INT8 = 0
    UINT8 = 1
    INT16 = 2
    UINT16 = 3
    INT32 = 4
    UINT32 = 5
    INT64 = 6
    UINT64 = 7
    FLOAT16 = 8
    BFLOAT16 = 9
    FLOAT32 = 10
    FLOAT64 = 11
    FLOAT8_E4M3 = 12
    FLOAT8_E5M2 = 13


class Op(IntEnum):
    SUM = 0
    PROD = 1
    MIN = 2
    MAX = 3
    AVG = 4
    BAND = 5
    BOR = 6
    BXOR = 7


class Collective(IntEnum):
    ALL_REDUCE = 0
    REDUCE = 1
    BROADCAST = 2
    ALL_GATHER = 3
    REDUCE_SCATTER = 4
    ALL_TO_ALL = 5
    GATHER = 6
    SCATTER = 7
    BARRIER = 8
    SEND = 9
    RECV = 10


OpFunction = CFUNCTYPE(None, c_void_p, c_void_p, c_void_p, c_size_t, c_int)
StreamFunction = CFUNCTYPE(None, c_void_p)


class UniqueId(Structure):
    _fields_ = [
        ("bytes", c_ubyte * 128),
    ]


class Config(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("deterministic", c_int),
        ("algorithm", c_char_p),
        ("slot_bytes", c_size_t),
        ("slots", c_int),
        ("timeout", c_double),
        ("cuda_device", c_int),
        ("network", c_char_p),
        ("traffic_class", c_int),
        ("min_blocks", c_int),
        ("max_blocks", c_int),
        ("uniform", c_int),
        ("copy_engines", c_int),
    ]


class Call(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("collective", c_int),
        ("type", c_int),
        ("op", c_int),
        ("root", c_int),
        ("input", c_void_p),
        ("output", c_void_p),
        ("count", c_size_t),
        ("comm", c_void_p),
        ("stream", c_void_p),
        ("algorithm", c_char_p),
    ]


class Envelope(Structure):
    _fields_ = [
        ("source", c_int),
        ("tag", c_int),
        ("bytes", c_size_t),
    ]


# Function: (result, arguments).
PROTOTYPES = {
    "rondo_comm_open": (c_int, (c_void_p, c_void_p,)),
    "rondo_unique_id_create": (c_int, (c_void_p,)),
    "rondo_comm_open_id": (c_int, (c_void_p, c_int, c_int, c_void_p, c_void_p,)),
    "rondo_comm_open_all": (c_int, (c_int, c_void_p, c_void_p,)),
    "rondo_comm_split": (c_int, (c_void_p, c_int, c_int, c_void_p, c_void_p,)),
    "rondo_comm_dup": (c_int, (c_void_p, c_void_p,)),
    "rondo_comm_open_among": (c_int, (c_void_p, c_void_p, c_int, c_void_p, c_void_p,)),
    "rondo_comm_finalize": (c_int, (c_void_p,)),
    "rondo_comm_close": (None, (c_void_p,)),
    "rondo_comm_abort": (c_int, (c_void_p,)),
    "rondo_comm_agree": (c_int, (c_void_p, c_void_p, c_void_p, c_void_p,)),
    "rondo_comm_failed": (c_int, (c_void_p, c_void_p, c_void_p,)),
    "rondo_comm_revoke": (c_int, (c_void_p,)),
    "rondo_comm_shrink": (c_int, (c_void_p, c_void_p, c_void_p,)),
    "rondo_comm_grow": (c_int, (c_void_p, c_void_p, c_int, c_int, c_void_p, c_void_p,)),
    "rondo_comm_set_timeout": (c_int, (c_void_p, c_double,)),
    "rondo_comm_rank": (c_int, (c_void_p,)),
    "rondo_comm_size": (c_int, (c_void_p,)),
    "rondo_comm_local_rank": (c_int, (c_void_p,)),
    "rondo_comm_local_size": (c_int, (c_void_p,)),
    "rondo_comm_query": (c_int, (c_void_p,)),
    "rondo_last_error": (c_char_p, (c_void_p,)),
    "rondo_result_string": (c_char_p, (c_int,)),
    "rondo_type_size": (c_size_t, (c_int,)),
    "rondo_type_name": (c_char_p, (c_int,)),
    "rondo_op_name": (c_char_p, (c_int,)),
    "rondo_version": (c_char_p, ()),
    "rondo_version_number": (c_int, ()),
    "rondo_mem_alloc": (c_int, (c_size_t, c_void_p,)),
    "rondo_mem_free": (c_int, (c_void_p,)),
    "rondo_comm_register": (c_int, (c_void_p, c_void_p, c_size_t, c_void_p,)),
    "rondo_comm_deregister": (c_int, (c_void_p, c_void_p,)),
    "rondo_all_reduce": (c_int, (c_void_p, c_void_p, c_size_t, c_int, c_int, c_void_p, c_void_p,)),
    "rondo_reduce": (c_int, (c_void_p, c_void_p, c_size_t, c_int, c_int, c_int, c_void_p, c_void_p,)),
    "rondo_broadcast": (c_int, (c_void_p, c_void_p, c_size_t, c_int, c_int, c_void_p, c_void_p,)),
    "rondo_all_gather": (c_int, (c_void_p, c_void_p, c_size_t, c_int, c_void_p, c_void_p,)),
    "rondo_reduce_scatter": (c_int, (c_void_p, c_void_p, c_size_t, c_int, c_int, c_void_p, c_void_p,)),
    "rondo_all_to_all": (c_int, (c_void_p, c_void_p, c_size_t, c_int, c_void_p, c_void_p,)),
    "rondo_gather": (c_int, (c_void_p, c_void_p, c_size_t, c_int, c_int, c_void_p, c_void_p,)),
    "rondo_scatter": (c_int, (c_void_p, c_void_p, c_size_t, c_int, c_int, c_void_p, c_void_p,)),
    "rondo_barrier": (c_int, (c_void_p, c_void_p,)),
    "rondo_send": (c_int, (c_void_p, c_size_t, c_int, c_int, c_void_p, c_void_p,)),
    "rondo_recv": (c_int, (c_void_p, c_size_t, c_int, c_int, c_void_p, c_void_p,)),
    "rondo_collective_name": (c_char_p, (c_int,)),
    "rondo_collective_call": (c_int, (c_void_p,)),
    "rondo_estimate": (c_int, (c_void_p, c_void_p,)),
    "rondo_group_start": (c_int, ()),
    "rondo_group_end": (c_int, ()),
    "rondo_group_estimate": (c_int, (c_void_p,)),
    "rondo_op_create_premul_sum": (c_int, (c_void_p, c_void_p, c_int, c_void_p,)),
    "rondo_op_create_user": (c_int, (c_void_p, OpFunction, c_void_p, c_int, c_void_p,)),
    "rondo_op_destroy": (c_int, (c_void_p, c_int,)),
    "rondo_stream_open": (c_int, (c_void_p,)),
    "rondo_stream_close": (None, (c_void_p,)),
    "rondo_stream_synchronize": (c_int, (c_void_p,)),
    "rondo_stream_query": (c_int, (c_void_p,)),
    "rondo_stream_call": (c_int, (c_void_p, StreamFunction, c_void_p,)),
    "rondo_event_open": (c_int, (c_void_p,)),
    "rondo_event_close": (None, (c_void_p,)),
    "rondo_event_record": (c_int, (c_void_p, c_void_p,)),
    "rondo_event_query": (c_int, (c_void_p,)),
    "rondo_event_wait": (c_int, (c_void_p,)),
    "rondo_stream_wait_event": (c_int, (c_void_p, c_void_p,)),
    "rondo_all_to_all_v": (c_int, (c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_int, c_void_p,
                           c_void_p,)),
    "rondo_all_gather_v": (c_int, (c_void_p, c_void_p, c_void_p, c_void_p, c_int, c_void_p, c_void_p,)),
    "rondo_reduce_scatter_v": (c_int, (c_void_p, c_void_p, c_void_p, c_void_p, c_int, c_int, c_void_p, c_void_p,)),
    "rondo_p2p_open": (c_int, (c_void_p, c_void_p,)),
    "rondo_p2p_close": (None, (c_void_p,)),
    "rondo_p2p_abort": (c_int, (c_void_p,)),
    "rondo_p2p_set_timeout": (c_int, (c_void_p, c_double,)),
    "rondo_p2p_send": (c_int, (c_void_p, c_void_p, c_size_t, c_int, c_int, c_void_p,)),
    "rondo_p2p_recv": (c_int, (c_void_p, c_void_p, c_size_t, c_int, c_int, c_void_p,)),
    "rondo_p2p_probe": (c_int, (c_void_p, c_int, c_int, c_double, c_void_p,)),
    "rondo_transfer_wait": (c_int, (c_void_p, c_double, c_void_p,)),
    "rondo_transfer_close": (None, (c_void_p,)),
    "rondo_unique_id_create_at": (c_int, (c_char_p, c_double, c_void_p,)),
    "rondo_event_outcome": (c_int, (c_void_p, c_double,)),
    "rondo_collective_post": (c_int, (c_void_p, c_void_p,)),
    "rondo_request_wait": (c_int, (c_void_p, c_double,)),
    "rondo_request_close": (None, (c_void_p,)),
    "rondo_comm_last_algorithm": (c_char_p, (c_void_p,)),
    "rondo_group_is_open": (c_int, ()),
    "rondo_group_needs": (c_int, (c_void_p, c_void_p,)),
    "rondo_trace_begin": (None, (c_char_p, c_uint,)),
    "rondo_trace_end": (None, (c_char_p, c_uint,)),
}
