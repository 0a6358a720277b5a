// SPDX-License-Identifier: Apache-2.0
// The macros of <windows.h> and its like that collide with common names.
#pragma once

#define min(a, b) (((a) < (b)) ? (a) : (b))
#define max(a, b) (((a) > (b)) ? (a) : (b))
#define near
#define far
#define small char
#define interface struct
