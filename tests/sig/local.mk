# SPDX-License-Identifier: MIT
# Function signatures through `pte sig`: vectors of the ABIs, stored structures of models.
TESTS += %D%/run_sig.py
EXTRA_DIST += %D%/run_sig.py %D%/vectors.json
