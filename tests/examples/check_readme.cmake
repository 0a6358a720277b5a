# SPDX-License-Identifier: Apache-2.0
# Demands that README contains the text of SOURCE, where it is given, and what PROGRAM prints.

file(READ "${README}" readme)

function(demand block)
  string(FIND "${readme}" "${block}" position)
  if(position EQUAL -1)
    message(FATAL_ERROR "${README} does not contain:\n${block}")
  endif()
endfunction()

if(DEFINED SOURCE)
  file(READ "${SOURCE}" code)
  string(REGEX REPLACE "^// SPDX[^\n]*\n" "" code "${code}")
  demand("```cpp\n${code}```")
endif()
execute_process(COMMAND "${PROGRAM}" OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
demand("```text\n${output}```")
