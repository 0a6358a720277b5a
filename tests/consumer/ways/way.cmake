# SPDX-License-Identifier: Apache-2.0
# A trainer built in one of the ways of a page, by the very lines that the page shows, with all warnings as
# errors; and its project is as it was before these lines. README.md has the ways `fetch` and `include`,
# docs/install.md has the others. The way `component` is the component mpi in a folder.
#
# cmake -DWAY=fetch|folder|submodule|package|include|pkg_config|component -DPAGE=... -DREPOSITORY=... -DPROGRAM=...
#       -DWORK=... -DGENERATOR=... -DCOMPILER=... -P way.cmake
cmake_minimum_required(VERSION 3.25)

set(warnings -Wall -Wextra -Wpedantic -Wconversion -Werror)

# Blocks of the section, in order. A semicolon would end an element of a list.
file(READ "${PAGE}" text)
string(REPLACE ";" "<semicolon>" text "${text}")
set(heading "Other ways")
if(WAY MATCHES "^(fetch|include)$")
  set(heading Install)
endif()
if(WAY STREQUAL component)
  set(heading Components)
endif()
if(NOT text MATCHES "\n## ${heading}\n(.*)")
  message(FATAL_ERROR "${PAGE} has no section '${heading}'")
endif()
set(section "${CMAKE_MATCH_1}")
string(FIND "${section}" "\n## " end)
string(SUBSTRING "${section}" 0 ${end} section)

# lines_with(variable word): the lines of the only block of the section with the word.
function(lines_with variable word)
  set(found)
  set(rest "${section}")
  while(rest MATCHES "\n```(cmake|sh)\n(.*)")
    set(rest "${CMAKE_MATCH_2}")
    string(FIND "${rest}" "```" length)
    string(SUBSTRING "${rest}" 0 ${length} lines)
    string(SUBSTRING "${rest}" ${length} -1 rest)
    string(SUBSTRING "${rest}" 3 -1 rest)
    string(FIND "${lines}" "${word}" position)
    if(NOT position EQUAL -1)
      list(APPEND found "${lines}")
    endif()
  endwhile()
  list(LENGTH found count)
  if(NOT count EQUAL 1)
    message(FATAL_ERROR "${count} blocks of ${PAGE}, section '${heading}', have '${word}'")
  endif()
  string(REPLACE "https://example.org/omnibal.git" "${REPOSITORY}" found "${found}")
  string(REPLACE "<semicolon>" ";" found "${found}")
  set(${variable} "${found}" PARENT_SCOPE)
endfunction()

# shell(lines folder): runs lines for a shell; what they write to stderr is an error too.
function(shell lines folder)
  execute_process(
    COMMAND sh -e -c "${lines}"
    WORKING_DIRECTORY "${folder}"
    RESULT_VARIABLE code
    OUTPUT_VARIABLE said
    ERROR_VARIABLE complained)
  if(NOT code EQUAL 0 OR "${complained}" MATCHES "[Ww]arning")
    message(FATAL_ERROR "${lines}${said}${complained}")
  endif()
endfunction()

set(project "${WORK}/project")
file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${project}")
file(COPY_FILE "${PROGRAM}" "${project}/trainer.cpp")

# Without CMake: the compiler of the test and its warnings in place of g++.
list(JOIN warnings " " warning_words)
macro(compile word)
  lines_with(lines "${word}")
  string(REPLACE "g++ " "\"${COMPILER}\" ${warning_words} " lines "${lines}")
  shell("${lines}./a.out" "${project}")
endmacro()
if(WAY STREQUAL include)
  file(CREATE_LINK "${REPOSITORY}" "${project}/omnibal" SYMBOLIC)
  compile("-I ")
  return()
endif()

# Installed by the lines of the page, into a folder that is then moved.
set(installed "${WORK}/installed")
if(WAY MATCHES "^(package|pkg_config)$")
  file(COPY "${REPOSITORY}" DESTINATION "${WORK}")
  cmake_path(GET REPOSITORY FILENAME copy)
  lines_with(lines "cmake --install")
  set(ENV{DESTDIR} "${WORK}/stage")
  set(ENV{CXX} "${COMPILER}")
  shell("${lines}" "${WORK}/${copy}")
  unset(ENV{DESTDIR})
  file(RENAME "${WORK}/stage/usr/local" "${installed}")
  file(REMOVE_RECURSE "${WORK}/stage" "${WORK}/${copy}")
endif()
if(WAY STREQUAL pkg_config)
  set(ENV{PKG_CONFIG_PATH} "${installed}/share/pkgconfig")
  compile("pkg-config")
  return()
endif()

# With CMake, in a project that has settings of its own and uses names that are used here too.
set(standard 20)
set(allowed "^(omnibal|OMNIBAL)")
set(taken_in "omnibal")
if(WAY STREQUAL fetch)
  lines_with(lines FetchContent)
  # That of CMake's own module.
  string(APPEND allowed "|^(FETCHCONTENT_|FetchContent|GIT_EXECUTABLE$|GIT_FOUND$|GIT_VERSION_STRING$|Git_|Git::|Git$)"
         "|^FIND_PACKAGE_MESSAGE_DETAILS_Git$")
  set(taken_in "\${omnibal_SOURCE_DIR}")
  set(standard 23)
elseif(WAY STREQUAL package)
  lines_with(lines find_package)
  # That of CMake's own macros for packages.
  string(APPEND allowed "|^PACKAGE_PREFIX_DIR$")
  set(taken_in "")
else()
  lines_with(lines add_subdirectory)
endif()
if(WAY STREQUAL component)
  # The lines themselves find MPI.
  set(allowed "")
endif()
if(WAY MATCHES "^(folder|component)$")
  file(COPY "${REPOSITORY}/" DESTINATION "${project}/omnibal" PATTERN .git EXCLUDE)
elseif(WAY STREQUAL submodule)
  shell("git init --quiet 2>&1\n" "${project}")
  lines_with(commands "git submodule")
  # Newer versions of git take no folder for an address without it.
  set(ENV{GIT_CONFIG_COUNT} 1)
  set(ENV{GIT_CONFIG_KEY_0} protocol.file.allow)
  set(ENV{GIT_CONFIG_VALUE_0} always)
  shell("${commands}" "${project}")
endif()

set(targets "")
if(taken_in)
  set(targets "snapshot_targets(\"${taken_in}\")\n")
endif()
file(
  WRITE "${project}/CMakeLists.txt"
  "cmake_minimum_required(VERSION 3.25)
project(trainer LANGUAGES CXX)
set(CMAKE_CXX_STANDARD ${standard})
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_VERIFY_INTERFACE_HEADER_SETS ON)
set(BUILD_TESTING ON)
enable_testing()
add_compile_options(${warning_words})
add_custom_target(docs)
add_custom_target(package_dataset)
add_executable(trainer trainer.cpp)
add_test(NAME trainer COMMAND trainer)
include(\"${CMAKE_CURRENT_LIST_DIR}/snapshot.cmake\")
snapshot(before)
${lines}snapshot(after)
snapshot_compare(before after \"${allowed}\")
${targets}install(TARGETS trainer)
")
set(build "${WORK}/build")
execute_process(
  COMMAND
    "${CMAKE_COMMAND}" -S "${project}" -B "${build}" -G "${GENERATOR}" -Werror=dev
    "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_PREFIX_PATH=${installed}"
    "-DCMAKE_INSTALL_PREFIX=${WORK}/of_trainer"
  OUTPUT_VARIABLE said
  ERROR_VARIABLE complained
  RESULT_VARIABLE code)
if(NOT code EQUAL 0 OR complained)
  message(FATAL_ERROR "${said}${complained}")
endif()
execute_process(COMMAND "${CMAKE_COMMAND}" --build "${build}" OUTPUT_VARIABLE said
                ERROR_VARIABLE said RESULT_VARIABLE code)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "${said}")
endif()

# Nothing to build but the trainer and its own targets.
execute_process(COMMAND "${CMAKE_COMMAND}" --build "${build}" --target help OUTPUT_VARIABLE said
                        COMMAND_ERROR_IS_FATAL ANY)
if(said MATCHES "omnibal_[a-z_]*|[a-z_]*verify_interface[a-z_]*")
  message(FATAL_ERROR "the trainer can build ${CMAKE_MATCH_0}\n${said}")
endif()

# The trainer's test is the only one, and runs.
execute_process(COMMAND "${CMAKE_CTEST_COMMAND}" --test-dir "${build}" OUTPUT_VARIABLE said
                ERROR_VARIABLE said RESULT_VARIABLE code)
if(NOT code EQUAL 0 OR NOT said MATCHES "100% tests passed, 0 tests failed out of 1\n")
  message(FATAL_ERROR "${said}")
endif()

# The trainer is all that is installed.
execute_process(COMMAND "${CMAKE_COMMAND}" --install "${build}" OUTPUT_QUIET COMMAND_ERROR_IS_FATAL
                        ANY)
file(GLOB_RECURSE files RELATIVE "${WORK}/of_trainer" "${WORK}/of_trainer/*")
if(NOT files STREQUAL "bin/trainer")
  message(FATAL_ERROR "the trainer installs: ${files}")
endif()

if(WAY STREQUAL component)
  return()
endif()

# One folder of headers, whose warnings are not the trainer's, and no flag beside its own.
file(READ "${build}/compile_commands.json" commands)
string(JSON command GET "${commands}" 0 command)
string(REGEX MATCHALL " -[^ ]+( [^- ][^ ]*)?" flags "${command}")
list(TRANSFORM flags STRIP)
list(FILTER flags EXCLUDE REGEX "^-(std=(gnu|c)[+][+]${standard}|std=(gnu|c)[+][+]2b|o .*|c .*|M.*)$")
foreach(warning IN LISTS warnings)
  list(FILTER flags EXCLUDE REGEX "^${warning}$")
endforeach()
if(NOT flags MATCHES "^-isystem [^;]*/include$")
  message(FATAL_ERROR "the trainer is compiled with: ${flags}\n${command}")
endif()
