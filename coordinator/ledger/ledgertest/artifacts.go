package ledgertest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

func testArtifacts(t *testing.T, s ledger.Store) {
	for i, size := range []int{0, 1, ledger.InlineLimit - 1, ledger.InlineLimit, ledger.InlineLimit + 1, 3 << 20} {
		body := pattern(i, size)
		want := ledger.Artifact{SHA256: ledger.Digest(body), Size: int64(size), Name: "first"}
		got, err := s.PutArtifact(t.Context(), "first", iotest.HalfReader(bytes.NewReader(body)))
		if err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
		wantSame(t, got, want)
		if _, err := s.PutArtifact(t.Context(), "second", bytes.NewReader(body)); err != nil {
			t.Fatalf("%d bytes again: %v", size, err)
		}
		if has, err := s.HasArtifact(t.Context(), want.SHA256); err != nil || !has {
			t.Fatalf("has %d bytes: %v, %v", size, has, err)
		}
		r, a, err := s.OpenArtifact(t.Context(), want.SHA256)
		if err != nil {
			t.Fatalf("open %d bytes: %v", size, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		wantSame(t, a, want)
		if !bytes.Equal(read(t, s, want.SHA256), body) {
			t.Fatalf("%d bytes came back different", size)
		}
	}
	// The digest is SHA-256 as everybody else computes it (FIPS 180-4, the one-block example "abc").
	a, err := s.PutArtifact(t.Context(), "", strings.NewReader("abc"))
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, a.SHA256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
}

func testBodies(t *testing.T, s ledger.Store) {
	c := Story("r1", "running", 1, 2)
	c.Bodies = []ledger.Body{
		{Name: "empty"}, {Name: "reply", Data: pattern(1, 500)}, {Name: "same", Data: pattern(1, 500)}, {Name: "large", Data: pattern(2, 5*ledger.InlineLimit)},
	}
	appendOK(t, s, c)
	for _, b := range c.Bodies {
		if !bytes.Equal(read(t, s, ledger.Digest(b.Data)), b.Data) {
			t.Fatalf("%s came back different", b.Name)
		}
	}
	_, a, err := s.OpenArtifact(t.Context(), ledger.Digest(c.Bodies[1].Data))
	if err != nil || a.Name != "reply" {
		t.Fatalf("%+v, %v", a, err)
	}
}

func testFailingReader(t *testing.T, s ledger.Store) {
	broken := errors.New("the upload broke off")
	for _, n := range []int{10, 2 * ledger.InlineLimit} {
		_, err := s.PutArtifact(t.Context(), "x", io.MultiReader(bytes.NewReader(pattern(n, n)), iotest.ErrReader(broken)))
		if !errors.Is(err, broken) {
			t.Fatalf("after %d bytes: %v", n, err)
		}
		if has, err := s.HasArtifact(t.Context(), ledger.Digest(pattern(n, n))); err != nil || has {
			t.Fatalf("half an artifact was kept: %v", err)
		}
	}
	if _, err := s.PutArtifact(cancelled(), "x", strings.NewReader("abc")); err == nil {
		t.Fatal("a cancelled upload succeeded")
	}
}

func testNoArtifact(t *testing.T, s ledger.Store) {
	none := ledger.Digest([]byte("none"))
	_, _, err := s.OpenArtifact(t.Context(), none)
	wantCode(t, err, apierr.NotFound)
	has, err := s.HasArtifact(t.Context(), none)
	if err != nil || has {
		t.Fatalf("%v, %v", has, err)
	}
	for _, bad := range []string{"", "abc", strings.ToUpper(none), "../../../../etc/passwd" + none[22:], none + "0"} {
		_, _, err := s.OpenArtifact(t.Context(), bad)
		wantCode(t, err, apierr.InvalidArgument)
	}
}

func testOwnMemory(t *testing.T, s ledger.Store) {
	c := Story("r1", "running", 1, 1)
	c.Bodies = []ledger.Body{{Data: []byte("body")}}
	sha := ledger.Digest(c.Bodies[0].Data)
	appendOK(t, s, c)
	want := json.RawMessage(bytes.Clone(c.Events[0].Payload))
	copy(c.Events[0].Payload, `{"X"`)
	copy(c.Bodies[0].Data, "XXXX")
	got := events(t, s, "r1")
	wantSame(t, got[0].Payload, want)
	copy(got[0].Payload, `{"Y"`)
	wantSame(t, events(t, s, "r1")[0].Payload, want)
	wantSame(t, string(read(t, s, sha)), "body")
}
