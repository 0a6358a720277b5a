# What the project's own tests, benchmarks and examples share. Users of the library get none of it.

set(omnibal_warnings -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow)

add_library(omnibal_development INTERFACE)
target_compile_options(omnibal_development INTERFACE ${omnibal_warnings})
target_link_libraries(omnibal_development INTERFACE omnibal::omnibal)

set(CMAKE_CXX_EXTENSIONS OFF)

# Open MPI starts neither as root nor with more ranks than cores unless it is told to: the launcher of
# version 4 by the first three variables, that of version 5 by the others.
set(omnibal_mpi_environment
    OMPI_ALLOW_RUN_AS_ROOT=1
    OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    OMPI_MCA_rmaps_base_oversubscribe=1
    PRTE_ALLOW_RUN_AS_ROOT=1
    PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
    PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe)

# Groups the files that match, such as "*/*.cpp", by folder: `areas` names the folders and
# `sources_of_<area>` has the files of each.
macro(omnibal_areas pattern)
  set(areas)
  file(GLOB sources CONFIGURE_DEPENDS "${pattern}")
  foreach(source IN LISTS sources)
    cmake_path(GET source PARENT_PATH area)
    cmake_path(GET area FILENAME area)
    list(APPEND areas ${area})
    list(APPEND sources_of_${area} "${source}")
  endforeach()
  list(REMOVE_DUPLICATES areas)
endmacro()

function(omnibal_missing name apt_package)
  message(FATAL_ERROR "${name} is missing. ./scripts/setup.sh installs what the project needs, "
                      "or by hand: apt-get install ${apt_package}")
endfunction()

# find_package, with a message that says which package of Debian and Ubuntu has it.
macro(omnibal_require name apt_package)
  find_package(${name} QUIET)
  if(NOT ${name}_FOUND)
    omnibal_missing(${name} ${apt_package})
  endif()
endmacro()
