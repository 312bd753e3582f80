package snapshot

const (
	// maxTexts is how many texts are looked for in further objects. Those that all objects have are in the first ones.
	maxTexts = 4096
	// maxTextBytes is the length of the longest: keys, and values out of a small choice.
	maxTextBytes = 64
)

// texts are those that the objects of a list have in common, keys and values, each once. A decoder makes them anew for each
// object, and of Pods they are a third of what is held in memory.
type texts map[string]any

// share is a value as it was decoded, with the texts that others have as well instead of its own.
func (t texts) share(value any) any {
	switch value := value.(type) {
	case string:
		return t.one(value)
	case map[string]any:
		shared := make(map[string]any, len(value))
		for key, field := range value {
			shared[t.one(key).(string)] = t.share(field)
		}
		return shared
	case []any:
		for i := range value {
			value[i] = t.share(value[i])
		}
	}
	return value
}

func (t texts) one(text string) any {
	if len(text) > maxTextBytes {
		return text
	}
	known, ok := t[text]
	if !ok {
		known = text
		if len(t) < maxTexts {
			t[text] = known
		}
	}
	return known
}
