package script

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// full is how make test runs the restarts a second time without the race detector, which makes them four times slower.
var full = flag.Bool("full", false, "restart a script a thousand times, not a quarter of that")

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == childArgument {
		if err := ServeChild(os.Stdin, os.Stdout); err != nil {
			os.Stderr.WriteString(err.Error())
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// childArgument makes the test binary a child.
const childArgument = "script-child"
