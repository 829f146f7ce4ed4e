package cli

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What up says to type next finds the coordinator that it started, also where that is not the one of the default folder.
func TestUpSaysHowToReachIt(t *testing.T) {
	for _, c := range []struct{ config, dataDir, want string }{
		{"", "", "Next: loopkeeper map --model "},
		{"x.yaml", "", "Next: loopkeeper map --server 127.0.0.1:27690 --model "},
		{"", "x", "Next: loopkeeper map --server 127.0.0.1:27690 --model "},
	} {
		path := filepath.Join(t.TempDir(), "said")
		out, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		a := &app{stdout: out, stderr: out}
		a.flags.config, a.flags.dataDir = c.config, c.dataDir
		err = a.greet(&net.TCPAddr{IP: net.IPv4zero, Port: 27690}, nil, 0)
		if err = firstError(err, out.Close()); err != nil {
			t.Fatal(err)
		}
		said, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(said), c.want) {
			t.Errorf("it lacks %q:\n%s %v", c.want, said, err)
		}
	}
}
