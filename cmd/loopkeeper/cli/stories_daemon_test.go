package cli_test

import (
	"os"

	"github.com/rogpeppe/go-internal/testscript"
)

// gone is `gone NAME`: it waits until a daemon has ended by itself, as in a crash.
func gone(ts *testscript.TestScript, neg bool, args []string) {
	d := ts.Value(daemons{}).(map[string]*daemon)[args[0]]
	if err := d.cmd.Wait(); err == nil {
		ts.Fatalf("%s ended as if all were well", args[0])
	}
}

// expand is `expand FILE`: it replaces each $NAME in a file by the variable.
func expand(ts *testscript.TestScript, neg bool, args []string) {
	text := os.Expand(ts.ReadFile(args[0]), ts.Getenv)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}
