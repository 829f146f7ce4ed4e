package trust

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	"github.com/loopkeeper/loopkeeper/proto/identity"
)

func aToken(t testing.TB) Token {
	t.Helper()
	token, err := NewToken([]string{"192.168.1.2:7702", "[fd00::2]:7702"}, identity.Fingerprint{1, 2, 3})
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestTokenIsReadBack(t *testing.T) {
	want := aToken(t)
	text := want.Text()
	for _, as := range []string{text, strings.ToLower(text), " " + text[:20] + "-" + text[20:60] + "\n  " + text[60:] + "\r\n"} {
		got, err := ParseToken(as)
		if err != nil || !cmp.Equal(got, want, cmp.AllowUnexported(Secret{})) {
			t.Errorf("read back: %v, %v", got, err)
		}
	}
}

// Each single wrong, missing or doubled character is told as such, without quoting the token.
func TestTypoInToken(t *testing.T) {
	text := aToken(t).Text()
	for i := range text {
		wrong := byte('A')
		if text[i] == 'A' {
			wrong = 'B'
		}
		for _, typo := range []string{text[:i] + string(wrong) + text[i+1:], text[:i] + text[i+1:], text[:i] + text[i:i+1] + text[i:]} {
			got, err := ParseToken(typo)
			if err == nil && got.Text() == text {
				continue // a doubled character at the end, or unused bits of the last one: nothing was lost
			}
			if e := apierr.As(err); err == nil || e.Code != apierr.InvalidArgument || !strings.HasPrefix(e.Message, "this is not a join token") {
				t.Fatalf("at %d: %v", i, err)
			}
		}
	}
}

func TestTokensAndSecretsDoNotShow(t *testing.T) {
	token := aToken(t)
	type holder struct {
		Token  *Token
		Secret Secret
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "token", token, "pointer", &token, "secret", token.Secret, "held", holder{&token, token.Secret})
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "token", token, "held", holder{&token, token.Secret})
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&log, verb+verb+verb+"\n", token, &token, holder{&token, token.Secret})
	}
	raw, err := json.Marshal(holder{&token, token.Secret})
	if err != nil {
		t.Fatal(err)
	}
	said := log.String() + string(raw)
	b := token.Secret.Bytes()
	for _, form := range []string{string(b), hex.EncodeToString(b), strings.Trim(fmt.Sprint(b), "[]"), token.Text(), tokenText.EncodeToString(b)} {
		if strings.Contains(said, form) {
			t.Errorf("the secret shows: %s", said)
		}
	}
}

func TestOnlyTheHashOfATokenIsStored(t *testing.T) {
	h := newHouse(t)
	token, _ := h.token(1)
	rows, err := h.store.Meta(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(rows)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) == 0 {
		t.Fatal("nothing is stored")
	}
	encoded, err := json.Marshal(token.Secret.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{hex.EncodeToString(token.Secret.Bytes()), strings.Trim(string(encoded), `"=`), token.Text()} {
		if strings.Contains(string(raw), form) {
			t.Errorf("the ledger holds %s", form)
		}
	}
}

func FuzzParseToken(f *testing.F) {
	f.Add(aToken(f).Text())
	f.Add("AEAQ")
	f.Add(strings.Repeat("7", 200))
	f.Fuzz(func(t *testing.T, text string) {
		token, err := ParseToken(text)
		if err != nil {
			if c := apierr.CodeOf(err); c != apierr.InvalidArgument && c != apierr.IncompatibleVersion {
				t.Errorf("%v", err)
			}
			return
		}
		again, err := ParseToken(token.Text())
		if err != nil || !cmp.Equal(again, token, cmp.AllowUnexported(Secret{})) {
			t.Errorf("%q is read as %v and then as %v, %v", text, token, again, err)
		}
	})
}
