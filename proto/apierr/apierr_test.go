package apierr

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestAcrossAStatus(t *testing.T) {
	want := New(CannotFit, "qwen3:32b needs 21.9 GiB, attic has 10.7 GiB").WithNext("loopkeeper nodes", "choose a smaller model")
	want.Details = []string{"attic"}
	got := FromStatus(ToStatus(fmt.Errorf("submit: %w", want)))
	e := As(got)
	if e.Code != CannotFit || !cmp.Equal(e.Next, want.Next) || !cmp.Equal(e.Details, want.Details) {
		t.Fatalf("got %+v", e)
	}
	if e.Message != "submit: "+want.Message {
		t.Fatalf("message %q lost its context or its text", e.Message)
	}
}

func TestPlainStatusGetsACode(t *testing.T) {
	for c, want := range map[codes.Code]Code{codes.Unavailable: Unavailable, codes.Canceled: Cancelled, codes.Unknown: Internal} {
		if got := CodeOf(FromStatus(status.Error(c, "x"))); got != want {
			t.Errorf("%v became %v, want %v", c, got, want)
		}
	}
}

func TestWrapKeepsTheInnerCodeAndAdvice(t *testing.T) {
	inner := New(NotFound, "no model qwen9").WithNext("ollama pull qwen9")
	e := Wrap(fmt.Errorf("show: %w", inner), Internal, "read the model's shape")
	if e.Code != NotFound || len(e.Next) != 1 || !errors.Is(e, inner) {
		t.Fatalf("got %+v", e)
	}
}

// The text is what grpc-go says when nobody answers at an address.
func TestAFailedDialReadsPlainly(t *testing.T) {
	err := status.Error(codes.Unavailable, `connection error: desc = "transport: Error while dialing: dial tcp 10.77.0.2:7701: i/o timeout"`)
	e := As(FromStatus(err))
	if e.Code != Unavailable || e.Message != "no answer: dial tcp 10.77.0.2:7701: i/o timeout" {
		t.Fatalf("%s: %s", e.Code, e.Message)
	}
}

// A text that is printed must hold each of its causes once.
func TestAPlainErrorIsSaidOnce(t *testing.T) {
	plain := fmt.Errorf("open the box: %w", errors.New("it is shut"))
	if got := As(plain).Error(); got != "open the box: it is shut" {
		t.Fatalf("said %q", got)
	}
	if got := As(fmt.Errorf("at noon: %w", Wrap(errors.New("it is shut"), Conflict, "open the box"))).Error(); got != "at noon: open the box: it is shut" {
		t.Fatalf("said %q", got)
	}
}
