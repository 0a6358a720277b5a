# SPDX-License-Identifier: Apache-2.0
# What a project can see of itself, to compare before and after it takes omnibal in.

# Settings that CMake changes by itself, and the trace of the lines in between.
set(snapshot_ignored "^(snapshot_|__|_|ARG[CVN0-9]|CMAKE_CURRENT_(LIST|FUNCTION)_|CMAKE_MATCH_|CMAKE_PARENT_LIST_FILE)")

# snapshot(name): properties and variables of the project, its folder and its cache.
macro(snapshot name)
  foreach(snapshot_list VARIABLES CACHE_VARIABLES PACKAGES_FOUND PACKAGES_NOT_FOUND)
    get_cmake_property(snapshot_${name}_${snapshot_list} ${snapshot_list})
  endforeach()
  foreach(snapshot_list IMPORTED_TARGETS BUILDSYSTEM_TARGETS TESTS COMPILE_OPTIONS
                        COMPILE_DEFINITIONS INCLUDE_DIRECTORIES LINK_OPTIONS LINK_DIRECTORIES)
    get_directory_property(snapshot_${name}_${snapshot_list} ${snapshot_list})
  endforeach()
  foreach(snapshot_variable IN LISTS snapshot_${name}_VARIABLES)
    if(NOT snapshot_variable MATCHES "${snapshot_ignored}")
      set(snapshot_${name}_is_${snapshot_variable} "${${snapshot_variable}}")
    endif()
  endforeach()
endmacro()

# snapshot_compare(before after allowed): an error for every difference, but for names that match.
function(snapshot_compare before after allowed)
  set(faults "")
  foreach(list VARIABLES CACHE_VARIABLES PACKAGES_FOUND PACKAGES_NOT_FOUND IMPORTED_TARGETS
               BUILDSYSTEM_TARGETS TESTS COMPILE_OPTIONS COMPILE_DEFINITIONS INCLUDE_DIRECTORIES
               LINK_OPTIONS LINK_DIRECTORIES)
    set(new ${snapshot_${after}_${list}})
    list(REMOVE_ITEM new ${snapshot_${before}_${list}})
    list(FILTER new EXCLUDE REGEX "${snapshot_ignored}")
    list(FILTER new EXCLUDE REGEX "${allowed}")
    if(new)
      string(APPEND faults "  ${list}: ${new}\n")
    endif()
  endforeach()
  foreach(variable IN LISTS snapshot_${before}_VARIABLES)
    if(NOT variable MATCHES "${snapshot_ignored}"
       AND NOT "${snapshot_${before}_is_${variable}}" STREQUAL "${snapshot_${after}_is_${variable}}")
      string(APPEND faults "  ${variable}: '${snapshot_${before}_is_${variable}}' became "
                    "'${snapshot_${after}_is_${variable}}'\n")
    endif()
  endforeach()
  if(faults)
    message(FATAL_ERROR "omnibal leaves in a project:\n${faults}")
  endif()
endfunction()

# snapshot_targets(folder): an error unless omnibal is the only target in the folders below, without
# tests or flags for those who link to it.
function(snapshot_targets folder)
  set(folders "${folder}")
  set(targets)
  while(folders)
    list(POP_FRONT folders next)
    foreach(property BUILDSYSTEM_TARGETS TESTS)
      get_property(value DIRECTORY "${next}" PROPERTY ${property})
      list(APPEND targets ${value})
    endforeach()
    get_property(below DIRECTORY "${next}" PROPERTY SUBDIRECTORIES)
    list(APPEND folders ${below})
  endwhile()
  if(NOT targets STREQUAL "omnibal")
    message(FATAL_ERROR "targets and tests of omnibal in a project: ${targets}")
  endif()
  foreach(property COMPILE_OPTIONS COMPILE_DEFINITIONS LINK_LIBRARIES LINK_OPTIONS)
    get_target_property(value omnibal INTERFACE_${property})
    if(value)
      message(FATAL_ERROR "who links to omnibal gets ${property}: ${value}")
    endif()
  endforeach()
endfunction()
