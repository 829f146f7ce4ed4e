package ledgertest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

func testEventsAt(t *testing.T, s ledger.Store) {
	appendOK(t, s, Story("r0", "running", 1, 9))
	appendOK(t, s, Story("r1", "running", 1, 2000))
	all := events(t, s, "r1")
	var want []ledger.Event
	var seqs []int64
	for seq := int64(2000); seq > 0; seq -= 3 { // in the order asked for, and more than a page of them
		seqs, want = append(seqs, seq), append(want, all[seq-1])
	}
	seqs, want = append(seqs, 5, 5), append(want, all[4], all[4])
	got, err := s.EventsAt(t.Context(), "r1", seqs)
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, got, want)
	if got, err := s.EventsAt(t.Context(), "r1", nil); err != nil || len(got) > 0 {
		t.Errorf("none asked for: %d, %v", len(got), err)
	}
	for _, missing := range [][]int64{{2001}, {1, 0, 2}, {2, -1}} {
		_, err := s.EventsAt(t.Context(), "r1", missing)
		wantCode(t, err, apierr.NotFound)
	}
	_, err = s.EventsAt(t.Context(), "nobody", []int64{1})
	wantCode(t, err, apierr.NotFound)
}

func testReadAt(t *testing.T, s ledger.Store) {
	for i, size := range []int{0, 1000, ledger.InlineLimit, 3 * ledger.InlineLimit} {
		body := pattern(i, size)
		c := ledger.Commit{Bodies: []ledger.Body{{Data: body}}}
		appendOK(t, s, c)
		sha := ledger.Digest(body)
		for _, part := range [][2]int{{0, 0}, {0, 8}, {size / 2, 100}, {0, size}, {size / 3, size}, {size, 5}} {
			got, err := s.ReadArtifactAt(t.Context(), sha, int64(part[0]), part[1])
			if err != nil {
				t.Fatalf("%d bytes from %d of %d: %v", part[1], part[0], size, err)
			}
			wantSame(t, string(got), string(body[part[0]:min(size, part[0]+part[1])]))
		}
		for _, bad := range [][2]int{{-1, 1}, {0, -1}, {size + 1, 1}} {
			_, err := s.ReadArtifactAt(t.Context(), sha, int64(bad[0]), bad[1])
			wantCode(t, err, apierr.InvalidArgument)
		}
		a, err := s.StatArtifact(t.Context(), sha)
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, a, ledger.Artifact{SHA256: sha, Size: int64(size)})
	}
	none := ledger.Digest([]byte("none"))
	_, err := s.ReadArtifactAt(t.Context(), none, 0, 1)
	wantCode(t, err, apierr.NotFound)
	_, err = s.StatArtifact(t.Context(), none)
	wantCode(t, err, apierr.NotFound)
}

// A second engine has to make the same chain, or an export of one could not be imported into the other.
func testHead(t *testing.T, s ledger.Store) {
	_, err := s.Head(t.Context(), "r1")
	wantCode(t, err, apierr.NotFound)
	appendOK(t, s, ledger.Commit{Runs: Story("r1", "queued", 1, 0).Runs})
	wantSame(t, head(t, s, "r1"), ledger.Head{})
	want := ""
	for seq := int64(1); seq <= 3; seq++ {
		both := Story("r1", "running", seq, seq)
		both.Events = append(both.Events, Story("r2", "running", seq, seq).Events...)
		both.Runs = append(both.Runs, Story("r2", "running", seq, seq).Runs...)
		appendOK(t, s, both)
		e := both.Events[0]
		sum := sha256.Sum256(fmt.Appendf(nil, "%s\nr1\n%d\n2026-11-29T23:59:59.12345679%dZ\nstep.succeeded\n%s", want, seq, seq-1, e.Payload))
		want = hex.EncodeToString(sum[:])
		wantSame(t, head(t, s, "r1"), ledger.Head{Seq: seq, Hash: want})
	}
	if head(t, s, "r2").Hash == want {
		t.Error("two runs with the same events share a chain")
	}
	row := Story("r1", "completed", 1, 0)
	appendOK(t, s, row) // a row alone leaves the chain as it is
	wantSame(t, head(t, s, "r1"), ledger.Head{Seq: 3, Hash: want})
	for _, spoil := range []func(*ledger.Event){
		func(e *ledger.Event) { e.Kind = "a\nb" },
		func(e *ledger.Event) { e.Payload = []byte("{\n}") },
	} {
		c := Story("r1", "running", 4, 4)
		spoil(&c.Events[0])
		wantCode(t, s.Append(t.Context(), c), apierr.InvalidArgument)
	}
}

func head(t *testing.T, s ledger.Store, id string) ledger.Head {
	t.Helper()
	h, err := s.Head(t.Context(), id)
	if err != nil {
		t.Fatalf("head of %s: %v", id, err)
	}
	return h
}
