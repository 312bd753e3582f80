package record

import (
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// FuzzDecodeSet: of a set of pages of which each says about itself what it likes, what can be read is read, and what is
// read belongs together and can be written again.
func FuzzDecodeSet(f *testing.F) {
	h := filled(50)
	h.pages = make([]*Page, 2)
	require.NoError(f, h.pack())
	f.Add(h.pages[0].Data, int32(2), int32(0), int32(Format), h.pages[1].Data, int32(2), int32(1), int32(Format))
	f.Add(h.pages[0].Data, int32(2), int32(0), int32(Format), h.pages[0].Data, int32(2), int32(0), int32(Format))
	f.Add([]byte{}, int32(0), int32(-1), int32(0), []byte{}, int32(1<<30), int32(1<<30), int32(Format+1))
	f.Fuzz(func(t *testing.T, data1 []byte, of1, index1, format1 int32, data2 []byte, of2, index2, format2 int32) {
		pages := []Page{
			{Of: of1, Index: index1, Format: format1, KeyID: h.keyID, Data: data1},
			{Of: of2, Index: index2, Format: format2, KeyID: h.keyID, Data: data2},
		}
		read, err := Decode(pages)
		require.NotNil(t, read)
		if err == nil {
			require.Equal(t, int32(2), of1)
			require.NotEqual(t, index1, index2)
		}
		if format1 > Format {
			require.ErrorIs(t, err, ErrNewerFormat, "of1 %d, index1 %d", of1, index1)
		}
		written, err := read.Encode()
		if err != nil {
			return // pairs can be packed in less than this program writes; then they may not fit again
		}
		again, err := Decode(written)
		require.NoError(t, err)
		require.Equal(t, contents(read), contents(again))
	})
}

// FuzzPlain: whatever a tenant writes, what a person reads of it is one line of printable text within its bounds.
func FuzzPlain(f *testing.F) {
	f.Add("two\nlines\x1b[31m and \u202e a turn", 40)
	f.Add("cut in the middle of \u00e9\u00e9\u00e9\u00e9", 24)
	f.Add("\xff\xfe not UTF-8", 3)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		limit = max(limit, 3)
		plain := Plain(text, limit)
		require.LessOrEqual(t, len(plain), limit)
		require.True(t, utf8.ValidString(plain))
		for _, r := range plain {
			require.True(t, unicode.IsPrint(r), "%q in %q", r, plain)
		}
	})
}
