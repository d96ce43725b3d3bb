complete -c sixscope -f -a '(sixscope __complete -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
