package kinds

var accountCrossings = map[string]crossing{
	"its credentials stay": {"v1", "ServiceAccount",
		Content{"secrets": []any{Content{"name": "token"}}, "imagePullSecrets": []any{Content{"name": "registry"}}, "automountServiceAccountToken": false},
		Content{},
		Content{"secrets": []any{Content{"name": "hosts-token"}}, "automountServiceAccountToken": true}},
	"a plain one": {"v1", "ServiceAccount", Content{}, Content{}, Content{}},
}
