# SPDX-License-Identifier: Apache-2.0
# What a project is told at configure where the CUDA toolkit or MPI is missing, where the toolkit is too old,
# where the project has not looked for it, and where OMNIBAL_WITH_CUDA switches the component off. The
# toolkits are folders with an nvcc that only says its version; that of 13.0 has no nvToolsExt.
# usage: cmake -DSOURCE=... -DPREFIX=... -DWORK=... -DGENERATOR=... -DCOMPILER=... -P missing.cmake

file(REMOVE_RECURSE "${WORK}")
foreach(version 12.4 13.0)
  set(toolkit "${WORK}/cuda-${version}")
  file(WRITE "${toolkit}/bin/nvcc"
       "#!/bin/sh\necho 'Cuda compilation tools, release ${version}, V${version}.99'\n")
  file(CHMOD "${toolkit}/bin/nvcc" PERMISSIONS OWNER_READ OWNER_EXECUTE)
  file(WRITE "${toolkit}/include/cuda_runtime.h" "")
  file(WRITE "${toolkit}/lib64/libcudart.so" "")
endforeach()
set(old "${WORK}/cuda-12.4")
file(WRITE "${old}/lib64/libnvToolsExt.so" "")

set(subdirectory "-DOMNIBAL_DIR=${SOURCE}" --log-level=VERBOSE)
set(looks -DLOOKS_FOR=CUDAToolkit)
set(package "-DCMAKE_PREFIX_PATH=${PREFIX}")
set(with_old "-DCUDAToolkit_ROOT=${old}")
set(with_new "-DCUDAToolkit_ROOT=${WORK}/cuda-13.0")
set(with_none -DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON)

# expect(succeeds|fails text options...): what the configuration with these options does and says.
function(expect outcome text)
  file(REMOVE_RECURSE "${WORK}/build")
  execute_process(
    COMMAND "${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}/missing" -B "${WORK}/build" -G
            "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${COMPILER}" ${ARGN}
    RESULT_VARIABLE status
    OUTPUT_VARIABLE said
    ERROR_VARIABLE said)
  set(does succeeds)
  if(NOT status EQUAL 0)
    set(does fails)
  endif()
  # Lines are broken anywhere between words.
  string(REGEX REPLACE "[ \n]+" " " words "${said}")
  string(FIND "${words}" "${text}" place)
  if(NOT does STREQUAL outcome OR place EQUAL -1)
    message(FATAL_ERROR "cmake ${ARGN}\n${does}, must be: ${outcome}, saying: ${text}\n${said}")
  endif()
  message(STATUS "${outcome}: ${text}")
endfunction()

set(is_old "the CUDA toolkit 12.4.99 is older than 12.8")
expect(succeeds "omnibal::cuda is off: ${is_old}" ${subdirectory} ${looks} ${with_old})
expect(fails "OMNIBAL_WITH_CUDA is ON, but ${is_old}. CUDAToolkit_ROOT names" ${subdirectory}
       ${with_old} -DOMNIBAL_WITH_CUDA=ON)
expect(succeeds "omnibal::cuda is off: no CUDA toolkit was found" ${subdirectory} ${looks}
       ${with_none})
expect(succeeds "omnibal::cuda is off: no CUDA toolkit was found" ${subdirectory} ${with_old})
expect(fails "OMNIBAL_WITH_CUDA is ON, but no CUDA toolkit was found." ${subdirectory}
       ${with_none} -DOMNIBAL_WITH_CUDA=ON)
expect(succeeds "There is no omnibal::cuda" ${subdirectory} -DOMNIBAL_WITH_CUDA=OFF)
expect(fails "The component cuda needs CUDA 12.8 or later, and 12.4.99 was found." ${package}
       ${with_old})
expect(fails "The component cuda needs a CUDA toolkit, and none was found." ${package}
       ${with_none})
expect(succeeds "There is omnibal::cuda" ${subdirectory} ${with_new} -DOMNIBAL_WITH_CUDA=ON)
expect(succeeds "There is omnibal::cuda" ${package} ${with_new})

# MPI that is looked for in vain, also where it is there.
set(subdirectory ${subdirectory} -DCOMPONENT=mpi)
set(package ${package} -DCOMPONENT=mpi)
set(looks -DLOOKS_FOR=MPI)
set(without_mpi -DMPI_ASSUME_NO_BUILTIN_MPI=ON -DMPI_SKIP_COMPILER_WRAPPER=ON -DMPI_SKIP_GUESSING=ON
                -DCMAKE_DISABLE_FIND_PACKAGE_PkgConfig=ON)
expect(succeeds "omnibal::mpi is off: MPI was not found" ${subdirectory} ${looks} ${without_mpi})
expect(fails "OMNIBAL_WITH_MPI is ON, but MPI was not found. MPI_HOME names" ${subdirectory}
       ${without_mpi} -DOMNIBAL_WITH_MPI=ON)
expect(fails "The component mpi needs MPI, which was not found." ${package} ${without_mpi})
