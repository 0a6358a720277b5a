# SPDX-License-Identifier: Apache-2.0
# The version of the headers is that of the README, the changelogs, the citation and the recipes, which
# have the fields that their formats want.
#
# cmake -DSOURCE=... -DVERSION=... -DPYTHON=... -P versions.cmake
cmake_minimum_required(VERSION 3.25)

# must_match(file expression): in which @version@ is the version.
function(must_match file expression)
  string(REPLACE "." "[.]" version "${VERSION}")
  string(REPLACE "@version@" "${version}" expression "${expression}")
  file(READ "${SOURCE}/${file}" text)
  if(NOT "\n${text}" MATCHES "${expression}")
    message(SEND_ERROR "${file} has nothing like: ${expression}")
  endif()
endfunction()

set(date "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]")
must_match(README.md "GIT_TAG v@version@[)]")
must_match(CHANGELOG.md "\n## \\[@version@\\] - ${date}\n")
must_match(cmake/packaging/debian/changelog "^\nomnibal [(]@version@-1[)] ")
must_match(CITATION.cff "\nversion: @version@\n")
must_match(CITATION.cff "\ndate-released: ${date}\n")
foreach(key cff-version message title authors)
  must_match(CITATION.cff "\n${key}:")
endforeach()

set(port cmake/packaging/vcpkg/ports/omnibal)
file(READ "${SOURCE}/${port}/vcpkg.json" manifest)
string(JSON name GET "${manifest}" name)
string(JSON version GET "${manifest}" version-semver)
string(JSON license GET "${manifest}" license)
if(NOT "${name} ${version} ${license}" STREQUAL "omnibal ${VERSION} Apache-2.0")
  message(SEND_ERROR "vcpkg.json is of ${name} ${version}, ${license}")
endif()

if(PYTHON)
  foreach(recipe conanfile.py test_package/conanfile.py)
    file(READ "${SOURCE}/cmake/packaging/conan/${recipe}" code)
    execute_process(COMMAND "${PYTHON}" -c "import ast, sys\nast.parse(sys.argv[1])" "${code}"
                            COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
endif()
