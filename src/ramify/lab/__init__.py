"""The laboratory: experiments of many runs, their results and reports, and descriptions of grammars."""
