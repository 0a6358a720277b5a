# SPDX-License-Identifier: Apache-2.0
"""Functions with the names and arguments that trainers call today, one module for each system.

They take and give lists as those systems do. A wrong argument is a ValueError.
"""
