"""`python -m supervisor.cli`, where the script `supervise` is not on PATH."""

import sys

from supervisor.cli.main import main

sys.exit(main())
