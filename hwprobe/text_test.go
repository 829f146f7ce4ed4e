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

func TestReadingsOfADeadBusAreUnknown(t *testing.T) {
	d := Device{ID: "a\x1b", Pool: "a\x1b", Utilisation: Known(4294967295.0), Temperature: Known(4294967.295), Power: Known(4294.967295)}
	r := Report{Devices: []Device{d}, Pools: []Pool{{ID: "host"}, {ID: "a\x1b"}}}.Clean()
	if got := r.Devices[0]; got.Utilisation != (Number{}) || got.Temperature != (Number{}) || got.Power != d.Power {
		t.Errorf("got %+v", got)
	}
	if _, found := r.Pool(r.Devices[0].Pool); !found || strings.Contains(r.Pools[1].ID, "\x1b") {
		t.Errorf("pools %+v", r.Pools)
	}
	if d.ID != "a\x1b" {
		t.Error("the given report was changed")
	}
}
