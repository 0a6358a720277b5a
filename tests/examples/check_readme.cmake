# SPDX-License-Identifier: Apache-2.0
# Demands that README contains the text of SOURCE and what PROGRAM prints.

file(READ "${README}" readme)
file(READ "${SOURCE}" code)
string(REGEX REPLACE "^// SPDX[^\n]*\n" "" code "${code}")
execute_process(COMMAND "${PROGRAM}" OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)

foreach(block "```cpp\n${code}```" "```text\n${output}```")
  string(FIND "${readme}" "${block}" position)
  if(position EQUAL -1)
    message(FATAL_ERROR "${README} does not contain:\n${block}")
  endif()
endforeach()
