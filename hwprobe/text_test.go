package hwprobe

import (
	"strings"
	"testing"
)

func TestLineCannotCommandATerminal(t *testing.T) {
	for text, want := range map[string]string{
		"NVIDIA GeForce RTX 4080 SUPER":                          "NVIDIA GeForce RTX 4080 SUPER",
		"Intel(R) Core(TM) i5-10400 CPU @ 2.90GHz — Größe 8 ≤ 9": "Intel(R) Core(TM) i5-10400 CPU @ 2.90GHz — Größe 8 ≤ 9",
		"\x1b[31mRTX\x1b[0m\x07":                                 "�[31mRTX�[0m�",
		"\u009b31mRTX":                                           "�31mRTX", // CSI in one character
		"Radeon\xff\xfeRX":                                       "Radeon�RX",
		"a\u202eb":                                               "a�b", // what follows would be shown backwards
		"one\r\ntwo\tthree\n":                                    "one  two three",
		strings.Repeat("x", mostText+1):                          strings.Repeat("x", mostText) + "…",
	} {
		if got := Line(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
