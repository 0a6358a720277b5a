// SPDX-License-Identifier: Apache-2.0 NOT NCCL: a shared library with the functions that omnibal
// looks for. All say that they failed, but for the version, which is FAKE_VERSION, and the id. With
// FAKE_LACKS_SPLIT one is missing.

#include <cstddef>
#include <cstring>

#include <nccl.h>

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = FAKE_VERSION;
  return ncclSuccess;
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::memset(id, 1, sizeof(*id));
  return ncclSuccess;
}
char const* ncclGetErrorString(ncclResult_t) { return "an error of the fake"; }
char const* ncclGetLastError(ncclComm_t) { return ""; }
ncclResult_t ncclCommInitRankConfig(ncclComm_t*, int, ncclUniqueId, int, ncclConfig_t*) {
  return ncclInternalError;
}
#if !defined(FAKE_LACKS_SPLIT)
ncclResult_t ncclCommSplit(ncclComm_t, int, int, ncclComm_t*, ncclConfig_t*) {
  return ncclInternalError;
}
#endif
ncclResult_t ncclCommFinalize(ncclComm_t) { return ncclInternalError; }
ncclResult_t ncclCommDestroy(ncclComm_t) { return ncclInternalError; }
ncclResult_t ncclCommAbort(ncclComm_t) { return ncclInternalError; }
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t*) { return ncclInternalError; }
ncclResult_t ncclCommCount(ncclComm_t, int*) { return ncclInternalError; }
ncclResult_t ncclCommCuDevice(ncclComm_t, int*) { return ncclInternalError; }
ncclResult_t ncclCommUserRank(ncclComm_t, int*) { return ncclInternalError; }
ncclResult_t ncclGroupStart() { return ncclInternalError; }
ncclResult_t ncclGroupEnd() { return ncclInternalError; }
ncclResult_t ncclAllGather(void const*, void*, std::size_t, ncclDataType_t, ncclComm_t,
                           cudaStream_t) {
  return ncclInternalError;
}
ncclResult_t ncclSend(void const*, std::size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t) {
  return ncclInternalError;
}
ncclResult_t ncclRecv(void*, std::size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t) {
  return ncclInternalError;
}

}  // extern "C"
