// Command loopkeeper runs long jobs on the GPUs of a home: one binary is coordinator, worker and command line.
package main

import (
	"os"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
