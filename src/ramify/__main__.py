"""`python -m ramify`"""

from ramify.cli import main

main()
