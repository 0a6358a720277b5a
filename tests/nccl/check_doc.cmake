# SPDX-License-Identifier: Apache-2.0
# Demands that DOC shows what SOURCE has from the line that begins with FIRST on, and what PROGRAM
# prints, word for word; each where it is given.

file(READ "${DOC}" doc)

function(demand block)
  string(FIND "${doc}" "${block}" position)
  if(position EQUAL -1)
    message(FATAL_ERROR "${DOC} does not contain:\n${block}")
  endif()
endfunction()

if(DEFINED SOURCE)
  file(READ "${SOURCE}" code)
  string(FIND "${code}" "\n${FIRST}" begin)
  if(begin EQUAL -1)
    message(FATAL_ERROR "no line of ${SOURCE} begins with: ${FIRST}")
  endif()
  math(EXPR begin "${begin} + 1")
  string(SUBSTRING "${code}" ${begin} -1 code)
  string(REGEX MATCHALL "\n" lines "${code}")
  list(LENGTH lines count)
  if(count GREATER 30)
    message(FATAL_ERROR "${SOURCE} takes ${count} lines from there on, the page says thirty")
  endif()
  demand("```cpp\n${code}```")
endif()
if(DEFINED PROGRAM)
  execute_process(COMMAND "${PROGRAM}" OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
  demand("```text\n${output}```")
endif()
