# SPDX-License-Identifier: MIT
# fish looks for the completion of a command in the file of its name.
source (status dirname)/pted.fish
