package api_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

func TestTextComesBackAsItWas(t *testing.T) {
	r := newRig(t)
	long := strings.Repeat("Zwölf Boxkämpfer jagen Viktor. 龍\n", 20_000)
	for name, chunks := range map[string][]string{
		"empty": {""}, "one": {"hello"}, "with a mark": {"\xef\xbb\xbfhello"}, "replacement character": {"a\uFFFDb"},
		"image": {"\x89PNG", "\r\n\x1a\n\x00\x00\x00\rIHDR\xff\xfe"}, "GIF of one chunk": {"GIF89a\x01\x00\x01\x00\x80\x00\x00"},
		"cut in a character": {"a\xf0", "\x9f\x92", "", "\xa1b"}, "long": {long[:300_001], long[300_001:300_002], long[300_002:]},
	} {
		t.Run(name, func(t *testing.T) {
			whole := strings.Join(chunks, "")
			ref, err := r.put("notes/"+name, chunks...)
			if err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256([]byte(whole))
			if ref.GetSha256() != hex.EncodeToString(sum[:]) || ref.GetBytes() != uint64(len(whole)) || ref.GetName() != "notes/"+name {
				t.Errorf("the reference is %v", ref)
			}
			if got := r.get(ref.GetSha256()); got != whole {
				t.Errorf("%d bytes came back, want %d", len(got), len(whole))
			}
		})
	}
}

func (r *rig) get(sha string) string {
	r.t.Helper()
	stream, err := r.client.GetArtifact(r.t.Context(), &coordinatorv1.GetArtifactRequest{Sha256: sha})
	if err != nil {
		r.t.Fatal(err)
	}
	var body bytes.Buffer
	for {
		msg, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return body.String()
		}
		if err != nil {
			r.t.Fatal(err)
		}
		body.Write(msg.GetChunk())
	}
}

func TestWhatIsNotTextIsRefused(t *testing.T) {
	r := newRig(t)
	for name, c := range map[string]struct {
		chunks []string
		says   string
	}{
		"NUL":                 {[]string{"text", "a\x00b"}, "is not UTF-8 text"},
		"Latin-1":             {[]string{"Stra\xdfe"}, "is not UTF-8 text"},
		"UTF-16":              {[]string{"\xff\xfeh\x00i\x00"}, "is not UTF-8 text"},
		"PDF":                 {[]string{"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"}, "is not UTF-8 text"},
		"ends in a character": {[]string{"abc", "\xe9\xbe"}, "is not UTF-8 text"},
		"cut and wrong":       {[]string{"abc\xe9", "d"}, "is not UTF-8 text"},
		"surrogate":           {[]string{"\xed\xa0\x80"}, "is not UTF-8 text"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := r.put("letters/"+name, c.chunks...)
			refused(t, err, apierr.InvalidArgument, "letters/"+name+" "+c.says)
			if err != nil && (strings.HasPrefix(err.Message, "read the body") || len(err.Next) == 0) {
				t.Errorf("the message is %q, next %v", err.Message, err.Next)
			}
		})
	}
	mib3 := strings.Repeat("\x00", 3<<20)
	_, err := r.put("scan.png", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", mib3, mib3, mib3, mib3, mib3, mib3)
	refused(t, err, apierr.InvalidArgument, "scan.png is larger than 16 MiB, the most that one image may have")
	_, err = r.put("nothing")
	refused(t, err, apierr.InvalidArgument, "nothing was sent")
	stream, _ := r.client.GetArtifact(t.Context(), &coordinatorv1.GetArtifactRequest{Sha256: strings.Repeat("ab", 32)})
	_, gerr := stream.Recv()
	refused(t, apierr.As(apierr.FromStatus(gerr)), apierr.NotFound)
}
