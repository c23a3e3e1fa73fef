/* Stands in for a part of Windows that wine before version 9 lacks: the random bytes that programs built with Rust
   ask for at start. Used by the tests under wine alone. */
#include <windows.h>
#include <ntsecapi.h>

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T size) { return RtlGenRandom(data, (ULONG)size); }
