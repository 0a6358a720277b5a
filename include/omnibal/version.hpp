// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The version of the library. The inline namespace `omnibal::v0` changes with the major version,
/// so that two versions can be linked into one program.

#define OMNIBAL_VERSION_MAJOR 0
#define OMNIBAL_VERSION_MINOR 9
#define OMNIBAL_VERSION_PATCH 0
