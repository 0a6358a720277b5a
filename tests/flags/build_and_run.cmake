# SPDX-License-Identifier: Apache-2.0
# Builds SOURCE with COMPILER and FLAGS, and runs it.

execute_process(COMMAND "${COMPILER}" -std=c++20 ${FLAGS} "-I${INCLUDE_DIR}" "${SOURCE}" -o "${PROGRAM}"
                        COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${PROGRAM}" COMMAND_ERROR_IS_FATAL ANY)
