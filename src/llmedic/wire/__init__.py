"""Our own network code: the one place where a socket is opened to a server under diagnosis."""
