# SPDX-License-Identifier: Apache-2.0
# Builds AREA.cpp with COMPILER at LEVEL, runs it by EMULATOR if that is set, and compares what it prints
# with expected/AREA.txt.

execute_process(
  COMMAND "${COMPILER}" -std=c++20 ${LEVEL} "-I${INCLUDE_DIR}"
          "${CMAKE_CURRENT_LIST_DIR}/${AREA}.cpp" -o "${PROGRAM}" COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${EMULATOR} "${PROGRAM}" OUTPUT_FILE "${PROGRAM}.txt" COMMAND_ERROR_IS_FATAL ANY)
set(expected "${CMAKE_CURRENT_LIST_DIR}/expected/${AREA}.txt")
execute_process(COMMAND diff -u "${expected}" "${PROGRAM}.txt" RESULT_VARIABLE different)
if(different)
  message(FATAL_ERROR "The results changed. If that is intended, copy ${PROGRAM}.txt to ${expected}")
endif()
