package ledger_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/ledger/ledgertest"
)

const childDir = "LEDGER_TEST_DIR"

// named is the payload of an event of writeUntilKilled: a large body put before it, a small one committed with it.
type named struct{ Large, Small string }

// writeUntilKilled is the child: it stores bodies and the events that name them, and prints each Seq that was acknowledged.
func writeUntilKilled() {
	ctx := context.Background()
	s, err := ledger.Open(ctx, ledger.Options{Dir: os.Getenv(childDir)})
	fatal(err)
	es, err := s.Events(ctx, "r1", 0, 0)
	fatal(err)
	for seq := int64(len(es)) + 1; ; seq++ {
		large := strings.Repeat(fmt.Sprintf("%d %d\n", os.Getpid(), seq), 8<<10+rand.IntN(8<<10))
		a, err := s.PutArtifact(ctx, "large", strings.NewReader(large))
		fatal(err)
		c := ledgertest.Story("r1", "running", seq, seq)
		c.Bodies = []ledger.Body{{Data: []byte(strconv.FormatInt(seq, 10))}}
		c.Events[0].Payload, err = json.Marshal(named{a.SHA256, ledger.Digest(c.Bodies[0].Data)})
		fatal(err)
		fatal(s.Append(ctx, c))
		fmt.Println(seq)
	}
}

func fatal(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func TestKilledInTheMiddle(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for round := range 6 {
		acked := killChild(t, dir, 1+rand.IntN(4))
		s := open(t, dir)
		es, err := s.Events(t.Context(), "r1", 0, 0)
		must(t, err)
		if int64(len(es)) < acked {
			t.Fatalf("round %d: %d events, %d were acknowledged", round, len(es), acked)
		}
		for _, e := range es {
			var n named
			must(t, json.Unmarshal(e.Payload, &n))
			for _, sha := range []string{n.Large, n.Small} {
				r, _, err := s.OpenArtifact(t.Context(), sha)
				must(t, err)
				_, err = io.Copy(io.Discard, r)
				must(t, err)
				must(t, r.Close())
			}
		}
		rep, err := s.Verify(t.Context())
		if err != nil || len(rep.Problems) > 0 {
			t.Fatalf("round %d: %+v, %v", round, rep, err)
		}
		must(t, s.Close())
	}
}

// killChild lets a child acknowledge n events, kills it at a random moment of the next ones, and returns the last one
// that it acknowledged.
func killChild(t *testing.T, dir string, n int) (acked int64) {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childRole+"=writer", childDir+"="+dir)
	var complaints strings.Builder
	child.Stderr = &complaints
	out, err := child.StdoutPipe()
	must(t, err)
	must(t, child.Start())
	for lines := bufio.NewScanner(out); lines.Scan(); n-- {
		acked, err = strconv.ParseInt(lines.Text(), 10, 64)
		must(t, err)
		if n == 1 {
			moment := time.AfterFunc(rand.N(15*time.Millisecond), func() { _ = child.Process.Kill() })
			defer moment.Stop()
		}
	}
	if err := child.Wait(); err == nil || complaints.Len() > 0 || acked == 0 {
		t.Fatalf("the child was not killed: %v, %s", err, complaints.String())
	}
	return acked
}
