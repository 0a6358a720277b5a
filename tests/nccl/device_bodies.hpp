// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the calls on a stream must do. The same bodies run over the stand-in, by threads, and over
// real NCCL, by processes with a device.

#include "exchange_stream_bodies.hpp"
#include "gather_bodies.hpp"
#include "post_balance_bodies.hpp"
