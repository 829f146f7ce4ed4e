package calls

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// controlStrings are what chat templates of many families mark turns, thoughts and tool calls with. Inside data they would
// become real control tokens: a text under review could forge a turn (measured). No wording of a prompt repairs that.
//
// By family: ChatML and Qwen <|im_start|>, Llama 3 <|start_header_id|> and <|eot_id|>, Phi <|user|>, Granite
// <|start_of_role|>, harmony <|channel|>, DeepSeek <｜User｜> with the fullwidth bar, Cohere <|START_OF_TURN_TOKEN|>, Gemma 4
// <|turn> and <turn|>, Gemma 3 <start_of_turn>, Mistral [INST] and [SYSTEM_PROMPT], Llama 2 <<SYS>>, GLM [gMASK] and <sop>.
var controlStrings = regexp.MustCompile(`(?i)<[|｜][^|｜<>\n]{1,64}[|｜]>` +
	`|<[|｜][a-z_"][a-z0-9_:"]{0,40}>|<[a-z_"][a-z0-9_:"]{0,40}[|｜]>` +
	`|</?(?:[a-z0-9_-]{1,20}:)?(?:think|thinking|thought|reasoning|tool_calls?|tool_response|tools|function_calls?|function_response|arg_key|arg_value|` +
	`start_of_turn|end_of_turn|start_of_image|end_of_image|start_function_call|end_function_call|start_function_response|end_function_response|` +
	`bos|eos|s|unk|pad|sop|eop|(?:unused|reserved|extra_id)_?[0-9]{1,5})>` +
	`|\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|MODEL_SETTINGS|THINK|gMASK|sMASK)\]|<</?SYS>>`)

// breakable are the runes that control strings are made of, each with one that looks alike. It is one rune for one, so that
// a place in the broken text is the same place in the text.
var breakable = map[rune]rune{'<': '‹', '>': '›', '|': '¦', '｜': '¦', '[': '⟦', ']': '⟧'}

// crossed stands for the first rune of a control string that holds none of the breakable ones.
const crossed = '¤'

func breakRune(r rune) rune {
	if b, ok := breakable[r]; ok {
		return b
	}
	return r
}

// neutralise breaks the control strings of the common families visibly; everything else, and every line, stays as it is.
// Those of one model are broken in send, over all that goes to it. A line over 400 characters is left whole: quotes go by
// line, and one that was cut here would make a quote of its end a lie. Package evidence shows such a line in numbered parts.
func neutralise(data string) string {
	for { // what stood around a broken one can be one now; as long as they may be, that ends after a few rounds
		broken := controlStrings.ReplaceAllStringFunc(data, func(found string) string { return strings.Map(breakRune, found) })
		if broken == data {
			return data
		}
		data = broken
	}
}

// asShown is a text in the form in which quotes are compared: all that any sanitising may have broken is broken, so that
// what a model was shown and what stands in the text compare alike, whichever model it was. It is one rune for one.
func asShown(text string) string { return strings.Map(breakRune, text) }

// sanitiser breaks the control strings of one model. The zero value breaks nothing.
type sanitiser struct {
	known    bool
	replacer *strings.Replacer
}

// newSanitiser makes the sanitiser of a model with these control strings; nil: they are unknown. Tags of HTML that some
// vocabularies list (Gemma) are no marks of turns, and white space is none either.
func newSanitiser(control []string) sanitiser {
	if control == nil {
		return sanitiser{}
	}
	control = slices.Clone(control)
	slices.SortFunc(control, func(a, b string) int { return len(b) - len(a) }) // of two that begin alike the longer
	var pairs []string
	for _, c := range control {
		if b := broken(c); b != c {
			pairs = append(pairs, c, b)
		}
	}
	return sanitiser{known: true, replacer: strings.NewReplacer(pairs...)}
}

func (s sanitiser) clean(text string) string {
	if s.replacer == nil {
		return text
	}
	return s.replacer.Replace(text)
}

// broken is a control string broken visibly, or as it is where it cannot forge anything.
func broken(control string) string {
	switch {
	case htmlTag.MatchString(control), strings.TrimSpace(control) == "", strings.ContainsFunc(control, unicode.IsSpace):
		return control
	}
	if b := strings.Map(breakRune, control); b != control {
		return b
	}
	runes := []rune(control)
	if len(runes) < minBare {
		return control
	}
	runes[0] = crossed
	return string(runes)
}

// minBare is how long a control string without a breakable rune has to be: shorter ones are letters and signs of any text.
const minBare = 4

var htmlTag = regexp.MustCompile(`^</?(?:table|caption|thead|tbody|tfoot|tr|th|td|h[1-6]|blockquote|strong|em|b|i|u|sub|sup|code|img|p|br|ul|ol|li|a|pre|div|span)>$`)

// Flags of a subject. One that is flagged may be sent back, but is never passed by models alone.
const (
	FlagControlStrings = "control_strings" // it holds marks of turns, thoughts or tool calls
	FlagInjection      = "injection"       // it speaks to its reader as to a model
)

// flags says what is suspicious about a subject.
func flags(subject string) []string {
	var out []string
	if controlStrings.MatchString(subject) {
		out = append(out, FlagControlStrings)
	}
	if injection.MatchString(strings.Join(strings.Fields(subject), " ")) {
		out = append(out, FlagInjection)
	}
	return out
}

// injection is a short list of what texts say that want to steer who reads them. It is weak: any other wording passes it, and
// a text about such attacks is flagged as well. It only costs a look by a person, where a missed one costs a wrong verdict.
var injection = regexp.MustCompile(`(?i)` + strings.Join([]string{
	`\b(?:ignore|disregard|forget|override)\b.{0,30}\b(?:previous|prior|above|earlier|preceding|all|your)\b.{0,20}\b(?:instructions?|prompts?|rules|directions|guidelines)\b`,
	`\byou are (?:now|no longer) (?:an?|the|in|my|going|acting|bound)\b`,
	`\b(?:mark|rate|grade|score|judge|evaluate|answer|count|treat) (?:this|it|the (?:subject|criterion|criteria|text|answer)|every(?:thing)?|all)\b.{0,30}\b(?:as )?(?:met|passed|passing|correct|approved|accepted)\b`,
	`\b(?:system prompt|system message|developer message|hidden instructions?)\b`,
	`\bas an ai (?:language )?model\b`, `\b(?:new|updated) instructions?:`, `(?:^| )#{2,3} ?(?:instruction|system|response):`,
	`\bnote to (?:the )?(?:judge|reviewer|grader|evaluator|ai|model|llm)\b`, `\b(?:dear|attention) (?:judge|reviewer|grader|evaluator|ai|model|llm)\b`,
	`\b(?:ignorier|vergiss|missachte)\w*\b.{0,30}\b(?:vorherigen?|bisherigen?|obigen?|alle)\b.{0,20}\b(?:anweisung|anleitung|vorgabe|regel)`,
	`\bdu bist (?:jetzt|ab jetzt|nun)\b`,
	`\b(?:ignore[zr]?|oublie[zr]?)\b.{0,30}\b(?:instructions?|consignes?)\b.{0,20}(?:précédente|ci-dessus|antérieure)`, `\b(?:tu es|vous êtes) (?:maintenant|désormais)\b`,
	`\b(?:ignora|olvida|ignore)\b.{0,30}\b(?:instrucciones|istruzioni|instruções)\b.{0,20}\b(?:anterior|previas|precedenti|acima)`, `\bahora eres\b`,
	`(?:忽略|无视|忘记).{0,10}(?:之前|以上|上述|前面|所有).{0,10}(?:指令|指示|说明|提示|规则)`, `你现在是`,
	`(?:以前|上記|これまで)の?(?:すべての)?(?:指示|命令).{0,6}(?:無視|忘れ)`,
	`(?:игнорируй|забудь)\S*.{0,20}(?:предыдущи|все|выше)\S*.{0,20}(?:инструкци|указани|правил)`,
}, "|"))
