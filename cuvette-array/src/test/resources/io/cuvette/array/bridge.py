"""Arrays between Java and libraries of Python, by DLPack.

Java sets EXPORT, the address of a function, and REASON, why that failed."""
import ctypes
import gc
import sys

_api = ctypes.pythonapi
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_api.PyCapsule_GetName.restype = ctypes.c_char_p
_api.PyCapsule_GetName.argtypes = [ctypes.py_object]
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]

_NAMES = {False: b"dltensor", True: b"dltensor_versioned"}
_USED = {False: b"used_dltensor", True: b"used_dltensor_versioned"}
_export = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(EXPORT)


class Exported:
    """An array of Java that libraries take by from_dlpack."""

    def __init__(self, number, device):
        self.number, self.device = number, device

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        versioned = max_version is not None and max_version[0] >= 1
        address = _export(self.number, 1 if stream is None else int(stream), versioned, bool(copy))
        if not address:
            raise BufferError(ctypes.string_at(REASON).decode())
        return _api.PyCapsule_New(address, _NAMES[versioned], None)


def give(array, stream=None):
    """Takes the tensor of an array out of its capsule: its address, and whether it has a version."""
    arguments = {} if stream is None else {"stream": stream}
    try:
        capsule = array.__dlpack__(max_version=(1, 1), **arguments)
    except TypeError:  # of before DLPack 1.0
        capsule = array.__dlpack__(**arguments)
    versioned = _api.PyCapsule_GetName(capsule) == _NAMES[True]
    address = _api.PyCapsule_GetPointer(capsule, _NAMES[versioned])
    _api.PyCapsule_SetName(capsule, _USED[versioned])
    return "%d %d" % (address, versioned)
