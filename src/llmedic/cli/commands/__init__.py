"""One module per subcommand, each with a click command named `command`; none knows its siblings."""
