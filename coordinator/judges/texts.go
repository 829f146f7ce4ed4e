package judges

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// topic is what texts of our own are made from: a title, a first sentence, and points of which each text has some. %d becomes a
// number of its own, %s a name.
type topic struct {
	title, opening string
	points         []string
}

var topics = []topic{
	{"Minutes of the house meeting", "The owners met in the laundry room, and %s took the minutes.", []string{
		"The roof over the east wing is repaired for %d euros.", "%s asks the firm for a second offer within %d days.",
		"The heating is checked before the winter, which costs %d euros.", "The bicycle cellar gets %d hooks along the wall.",
		"%s reads the water meters on the %dth.", "The reserve fund stands at %d euros.", "Two trees in the yard are cut back by %s and a gardener.",
		"The lift was out of order for %d hours since the last meeting."}},
	{"Report on the test of the pumps", "All pumps ran for a day in the hall of %s.", []string{
		"Pump A moved %d litres an hour at full power.", "Pump B stopped after %d minutes because its seal leaked.",
		"The loudest of them had %d decibels at one metre.", "%s replaced the filter and measured once more.",
		"At half power the motor took %d watts.", "The water was never warmer than %d degrees.",
		"For the next test %s orders %d seals of the harder kind.", "The noise comes from the bearing and not from the wheel."}},
	{"Order for the school kitchen", "%s places this order for the first week of the term.", []string{
		"We need %d kilograms of potatoes, the waxy kind.", "Please deliver %d litres of milk on Monday and Thursday.",
		"The bill goes to %s at the school office.", "Of apples we take %d pieces, all from this year.",
		"The last delivery lacked %d loaves, which were paid for.", "Bread is to be cut by the bakery this time.",
		"%s signs for the goods at the back door.", "Frozen peas are not wanted any more."}},
	{"Notes on the walk along the coast", "%s and two friends walked from the harbour to the lighthouse.", []string{
		"The way is %d kilometres long and climbs three times.", "Behind the second bay %s lost a glove.",
		"The inn at the ferry has %d beds and takes no dogs.", "A bus goes back every %d minutes in summer.",
		"The old path was closed after the storm, so a detour is marked.", "At the lighthouse there are %d steps to the top.",
		"%s counted %d seals on the sandbank.", "Water can be had at the chapel and nowhere else."}},
	{"Handover of the night shift", "%s hands the ward over to the early shift.", []string{
		"Room four was given %d millilitres at midnight.", "The monitor of bed two is replaced by %s this morning.",
		"The stock of gloves is down to %d boxes.", "A relative called at %d minutes past five and will call again.",
		"The visit of the doctor is moved to the afternoon.", "%s checked the emergency case, and nothing is missing.",
		"The temperature in the fridge was %d tenths of a degree too high.", "The lift is used for beds only until noon."}},
}

var names = []string{"Ms Okoro", "Mr Lindqvist", "Dr Haddad", "Ms Tanaka", "Mr Pereira", "Ms Novak", "Mr Achebe", "Ms Ruiz", "Mr Kowalski", "Ms Iyer"}

// pointsOfText is how many points a text of our own has.
const pointsOfText = 6

// ownTexts makes n texts, each with other points, names and numbers.
func ownTexts(n int, seed uint64) []string {
	var out []string
	for i := range n {
		rng := rand.New(rand.NewPCG(seed, uint64(i)|1<<63))
		t := topics[i%len(topics)]
		used := map[int]bool{}
		lines := []string{t.title, "", filled(t.opening, rng, used), ""}
		for _, p := range rng.Perm(len(t.points))[:pointsOfText] {
			lines = append(lines, "- "+filled(t.points[p], rng, used))
		}
		out = append(out, strings.Join(lines, "\n"))
	}
	return out
}

// filled puts names and numbers into a sentence; no number comes twice in a text.
func filled(sentence string, rng *rand.Rand, used map[int]bool) string {
	for strings.Contains(sentence, "%s") {
		sentence = strings.Replace(sentence, "%s", names[rng.IntN(len(names))], 1)
	}
	for strings.Contains(sentence, "%d") {
		n := 11 + rng.IntN(980)
		if strings.Contains(sentence, "%dth") {
			n = 11 + rng.IntN(9)
		}
		if strings.Contains(sentence, "minutes past") {
			n = 11 + rng.IntN(48)
		}
		if !used[n] {
			used[n] = true
			sentence = strings.Replace(sentence, "%d", fmt.Sprint(n), 1)
		}
	}
	return sentence
}
