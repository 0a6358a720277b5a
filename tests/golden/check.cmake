# Builds digest.cpp with COMPILER at LEVEL and compares what it prints with expected.txt.

execute_process(
  COMMAND "${COMPILER}" -std=c++20 ${LEVEL} "-I${INCLUDE_DIR}" "${CMAKE_CURRENT_LIST_DIR}/digest.cpp"
          -o "${PROGRAM}" COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${PROGRAM}" OUTPUT_FILE "${PROGRAM}.txt" COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND diff -u "${CMAKE_CURRENT_LIST_DIR}/expected.txt" "${PROGRAM}.txt"
                RESULT_VARIABLE different)
if(different)
  message(FATAL_ERROR "The results changed. If that is intended, copy ${PROGRAM}.txt to "
                      "${CMAKE_CURRENT_LIST_DIR}/expected.txt")
endif()
