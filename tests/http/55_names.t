# What inputs and outputs are called: by the structure that the exporter stored, or by their index.
model keywords
model odd_keys
model add

play metadata, configuration and shapes have the names
get /v2/models/keywords
< 200
body .*"inputs":\[\{"name":"input_0",[^}]*\},\{"name":"ids",[^}]*\},\{"name":"positions",[^}]*\},\{"name":"mask",[^}]*\},\{"name":"features\.image",[^}]*\},\{"name":"features\.scales\.0",[^}]*\},\{"name":"features\.scales\.1",[^}]*\}\],"outputs":\[\{"name":"logits",[^}]*\},\{"name":"boxes\.0",[^}]*\},\{"name":"boxes\.1",[^}]*\},\{"name":"kept",[^}]*\}\].*
get /v2/models/keywords/config
< 200
body .*"name":"ids",.*"name":"features\.scales\.1",.*"name":"boxes\.0",.*
post /v2/models/keywords/shape {"inputs":[{"name":"input_0","shape":[2,4]},{"name":"ids","shape":[2]},{"name":"input_2","shape":[2]},{"name":"mask","shape":[2]},{"name":"features.image","shape":[2,2,2]}]}
< 200
json {"model_name":"keywords","model_version":"1","outputs":[{"name":"logits","datatype":"FP32","shape":[2,4],"bytes":32},{"name":"boxes.0","datatype":"FP32","shape":[2,2],"bytes":16},{"name":"boxes.1","datatype":"FP32","shape":[2,4],"bytes":32},{"name":"kept","datatype":"INT64","shape":[2],"bytes":16}]}

play inputs by name, by alias and mixed, in any order
post /v2/models/keywords/infer {"inputs":[{"name":"input_0","shape":[1,4],"datatype":"FP32","data":[1,2,3,4]},{"name":"ids","shape":[1],"datatype":"INT64","data":[1]},{"name":"positions","shape":[1],"datatype":"INT64","data":[2]},{"name":"mask","shape":[1],"datatype":"BOOL","data":[true]},{"name":"features.image","shape":[1,2,2],"datatype":"FP32","data":[2,4,6,8]},{"name":"features.scales.0","shape":[4],"datatype":"FP32","data":[1,1,1,1]},{"name":"features.scales.1","shape":[4],"datatype":"FP32","data":[0,0,0,0]}]}
< 200
json {"model_name":"keywords","model_version":"1","outputs":[{"name":"logits","datatype":"FP32","shape":[1,4],"data":[1.0,2.0,3.0,4.0]},{"name":"boxes.0","datatype":"FP32","shape":[1,2],"data":[4.0,6.0]},{"name":"boxes.1","datatype":"FP32","shape":[1,4],"data":[0.0,0.0,0.0,0.0]},{"name":"kept","datatype":"INT64","shape":[1],"data":[1]}]}
post /v2/models/keywords/infer {"inputs":[{"name":"input_0","shape":[1,4],"datatype":"FP32","data":[1,2,3,4]},{"name":"input_1","shape":[1],"datatype":"INT64","data":[1]},{"name":"input_2","shape":[1],"datatype":"INT64","data":[2]},{"name":"input_3","shape":[1],"datatype":"BOOL","data":[true]},{"name":"input_4","shape":[1,2,2],"datatype":"FP32","data":[2,4,6,8]},{"name":"input_5","shape":[4],"datatype":"FP32","data":[1,1,1,1]},{"name":"input_6","shape":[4],"datatype":"FP32","data":[0,0,0,0]}]}
< 200
json {"model_name":"keywords","model_version":"1","outputs":[{"name":"logits","datatype":"FP32","shape":[1,4],"data":[1.0,2.0,3.0,4.0]},{"name":"boxes.0","datatype":"FP32","shape":[1,2],"data":[4.0,6.0]},{"name":"boxes.1","datatype":"FP32","shape":[1,4],"data":[0.0,0.0,0.0,0.0]},{"name":"kept","datatype":"INT64","shape":[1],"data":[1]}]}
post /v2/models/keywords/infer {"inputs":[{"name":"input_0","shape":[1,4],"datatype":"FP32","data":[1,2,3,4]},{"name":"ids","shape":[1],"datatype":"INT64","data":[1]},{"name":"positions","shape":[1],"datatype":"INT64","data":[2]},{"name":"input_3","shape":[1],"datatype":"BOOL","data":[true]},{"name":"input_4","shape":[1,2,2],"datatype":"FP32","data":[2,4,6,8]},{"name":"input_5","shape":[4],"datatype":"FP32","data":[1,1,1,1]},{"name":"input_6","shape":[4],"datatype":"FP32","data":[0,0,0,0]}]}
< 200
json {"model_name":"keywords","model_version":"1","outputs":[{"name":"logits","datatype":"FP32","shape":[1,4],"data":[1.0,2.0,3.0,4.0]},{"name":"boxes.0","datatype":"FP32","shape":[1,2],"data":[4.0,6.0]},{"name":"boxes.1","datatype":"FP32","shape":[1,4],"data":[0.0,0.0,0.0,0.0]},{"name":"kept","datatype":"INT64","shape":[1],"data":[1]}]}
post /v2/models/keywords/infer {"inputs":[{"name":"features.scales.1","shape":[4],"datatype":"FP32","data":[0,0,0,0]},{"name":"features.scales.0","shape":[4],"datatype":"FP32","data":[1,1,1,1]},{"name":"features.image","shape":[1,2,2],"datatype":"FP32","data":[2,4,6,8]},{"name":"mask","shape":[1],"datatype":"BOOL","data":[true]},{"name":"positions","shape":[1],"datatype":"INT64","data":[2]},{"name":"ids","shape":[1],"datatype":"INT64","data":[1]},{"name":"input_0","shape":[1,4],"datatype":"FP32","data":[1,2,3,4]}]}
< 200
json {"model_name":"keywords","model_version":"1","outputs":[{"name":"logits","datatype":"FP32","shape":[1,4],"data":[1.0,2.0,3.0,4.0]},{"name":"boxes.0","datatype":"FP32","shape":[1,2],"data":[4.0,6.0]},{"name":"boxes.1","datatype":"FP32","shape":[1,4],"data":[0.0,0.0,0.0,0.0]},{"name":"kept","datatype":"INT64","shape":[1],"data":[1]}]}
post /v2/models/keywords/infer {"inputs":[{"name":"input_0","shape":[1,4],"datatype":"FP32","data":[1,2,3,4]},{"name":"positions","shape":[1],"datatype":"INT64","data":[1]},{"name":"ids","shape":[1],"datatype":"INT64","data":[2]},{"name":"mask","shape":[1],"datatype":"BOOL","data":[true]},{"name":"features.image","shape":[1,2,2],"datatype":"FP32","data":[2,4,6,8]},{"name":"features.scales.0","shape":[4],"datatype":"FP32","data":[1,1,1,1]},{"name":"features.scales.1","shape":[4],"datatype":"FP32","data":[0,0,0,0]}],"outputs":[{"name":"logits"}]}
< 200
json {"model_name":"keywords","model_version":"1","outputs":[{"name":"logits","datatype":"FP32","shape":[1,4],"data":[4.0,5.0,6.0,7.0]}]}

play an output is answered under the name that asked for it
post /v2/models/keywords/infer {"inputs":[{"name":"input_0","shape":[1,4],"datatype":"FP32","data":[1,2,3,4]},{"name":"ids","shape":[1],"datatype":"INT64","data":[1]},{"name":"positions","shape":[1],"datatype":"INT64","data":[2]},{"name":"mask","shape":[1],"datatype":"BOOL","data":[true]},{"name":"features.image","shape":[1,2,2],"datatype":"FP32","data":[2,4,6,8]},{"name":"features.scales.0","shape":[4],"datatype":"FP32","data":[1,1,1,1]},{"name":"features.scales.1","shape":[4],"datatype":"FP32","data":[0,0,0,0]}],"outputs":[{"name":"kept"},{"name":"boxes.0"}]}
< 200
json {"model_name":"keywords","model_version":"1","outputs":[{"name":"kept","datatype":"INT64","shape":[1],"data":[1]},{"name":"boxes.0","datatype":"FP32","shape":[1,2],"data":[4.0,6.0]}]}
post /v2/models/keywords/infer {"inputs":[{"name":"input_0","shape":[1,4],"datatype":"FP32","data":[1,2,3,4]},{"name":"ids","shape":[1],"datatype":"INT64","data":[1]},{"name":"positions","shape":[1],"datatype":"INT64","data":[2]},{"name":"mask","shape":[1],"datatype":"BOOL","data":[true]},{"name":"features.image","shape":[1,2,2],"datatype":"FP32","data":[2,4,6,8]},{"name":"features.scales.0","shape":[4],"datatype":"FP32","data":[1,1,1,1]},{"name":"features.scales.1","shape":[4],"datatype":"FP32","data":[0,0,0,0]}],"outputs":[{"name":"output_3"},{"name":"output_1"}]}
< 200
json {"model_name":"keywords","model_version":"1","outputs":[{"name":"output_3","datatype":"INT64","shape":[1],"data":[1]},{"name":"output_1","datatype":"FP32","shape":[1,2],"data":[4.0,6.0]}]}
post /v2/models/keywords/infer {"inputs":[{"name":"input_0","shape":[1,4],"datatype":"FP32","data":[1,2,3,4]},{"name":"ids","shape":[1],"datatype":"INT64","data":[1]},{"name":"positions","shape":[1],"datatype":"INT64","data":[2]},{"name":"mask","shape":[1],"datatype":"BOOL","data":[true]},{"name":"features.image","shape":[1,2,2],"datatype":"FP32","data":[2,4,6,8]},{"name":"features.scales.0","shape":[4],"datatype":"FP32","data":[1,1,1,1]},{"name":"features.scales.1","shape":[4],"datatype":"FP32","data":[0,0,0,0]}],"outputs":[{"name":"output_0"},{"name":"logits"}]}
< 200
json {"model_name":"keywords","model_version":"1","outputs":[{"name":"output_0","datatype":"FP32","shape":[1,4],"data":[1.0,2.0,3.0,4.0]},{"name":"logits","datatype":"FP32","shape":[1,4],"data":[1.0,2.0,3.0,4.0]}]}
post /v2/models/keywords/infer {"inputs":[{"name":"input_0","shape":[1,4],"datatype":"FP32","data":[1,2,3,4]},{"name":"ids","shape":[1],"datatype":"INT64","data":[1]},{"name":"positions","shape":[1],"datatype":"INT64","data":[2]},{"name":"mask","shape":[1],"datatype":"BOOL","data":[true]},{"name":"features.image","shape":[1,2,2],"datatype":"FP32","data":[2,4,6,8]},{"name":"features.scales.0","shape":[4],"datatype":"FP32","data":[1,1,1,1]},{"name":"features.scales.1","shape":[4],"datatype":"FP32","data":[0,0,0,0]}],"outputs":[{"name":"kept"},{"name":"output_3"},{"name":"kept"}]}
< 200
json {"model_name":"keywords","model_version":"1","outputs":[{"name":"kept","datatype":"INT64","shape":[1],"data":[1]},{"name":"output_3","datatype":"INT64","shape":[1],"data":[1]}]}
post /v2/models/keywords/infer {"inputs":[{"name":"input_0","shape":[1,4],"datatype":"FP32","data":[1,2,3,4]},{"name":"ids","shape":[1],"datatype":"INT64","data":[1]},{"name":"positions","shape":[1],"datatype":"INT64","data":[2]},{"name":"mask","shape":[1],"datatype":"BOOL","data":[true]},{"name":"features.image","shape":[1,2,2],"datatype":"FP32","data":[2,4,6,8]},{"name":"features.scales.0","shape":[4],"datatype":"FP32","data":[1,1,1,1]},{"name":"features.scales.1","shape":[4],"datatype":"FP32","data":[0,0,0,0]}],"outputs":[{"name":"boxes"}]}
< 400
json {"error":"outputs[0].name: model 'keywords' has no output 'boxes', expected one of logits, boxes.0, boxes.1 and kept"}

play no input twice, whatever it is called
post /v2/models/keywords/infer {"inputs":[{"name":"input_0","shape":[1,4],"datatype":"FP32","data":[1,2,3,4]},{"name":"ids","shape":[1],"datatype":"INT64","data":[1]},{"name":"positions","shape":[1],"datatype":"INT64","data":[2]},{"name":"mask","shape":[1],"datatype":"BOOL","data":[true]},{"name":"features.image","shape":[1,2,2],"datatype":"FP32","data":[2,4,6,8]},{"name":"features.scales.0","shape":[4],"datatype":"FP32","data":[1,1,1,1]},{"name":"features.scales.1","shape":[4],"datatype":"FP32","data":[0,0,0,0]},{"name":"input_1","shape":[1],"datatype":"INT64","data":[1]}]}
< 400
json {"error":"inputs[7].name: 'input_1' is inputs[1] 'ids'"}
post /v2/models/keywords/infer {"inputs":[{"name":"input_0","shape":[1,4],"datatype":"FP32","data":[1,2,3,4]},{"name":"input_1","shape":[1],"datatype":"INT64","data":[1]},{"name":"ids","shape":[1],"datatype":"INT64","data":[2]},{"name":"input_3","shape":[1],"datatype":"BOOL","data":[true]},{"name":"input_4","shape":[1,2,2],"datatype":"FP32","data":[2,4,6,8]},{"name":"input_5","shape":[4],"datatype":"FP32","data":[1,1,1,1]},{"name":"input_6","shape":[4],"datatype":"FP32","data":[0,0,0,0]}]}
< 400
json {"error":"inputs[2].name: 'ids' is inputs[1] 'input_1'"}
post /v2/models/keywords/shape {"inputs":[{"name":"ids","shape":[2]},{"name":"input_1","shape":[2]}]}
< 400
json {"error":"inputs[1].name: 'input_1' is inputs[0] 'ids'"}
post /v2/batch [{"id":"a","model_name":"keywords","answer":false,"inputs":[{"name":"input_0","shape":[1,4],"datatype":"FP32","data":[1,2,3,4]},{"name":"ids","shape":[1],"datatype":"INT64","data":[1]},{"name":"positions","shape":[1],"datatype":"INT64","data":[2]},{"name":"mask","shape":[1],"datatype":"BOOL","data":[true]},{"name":"features.image","shape":[1,2,2],"datatype":"FP32","data":[2,4,6,8]},{"name":"features.scales.0","shape":[4],"datatype":"FP32","data":[1,1,1,1]},{"name":"features.scales.1","shape":[4],"datatype":"FP32","data":[0,0,0,0]}]},{"model_name":"keywords","inputs":[{"name":"ids","shape":[1],"datatype":"INT64","data":[1]},{"name":"positions","shape":[1],"datatype":"INT64","data":[2]},{"name":"mask","shape":[1],"datatype":"BOOL","data":[true]},{"name":"features.image","shape":[1,2,2],"datatype":"FP32","data":[2,4,6,8]},{"name":"features.scales.0","shape":[4],"datatype":"FP32","data":[1,1,1,1]},{"name":"features.scales.1","shape":[4],"datatype":"FP32","data":[0,0,0,0]},{"name":"input_0","$from":{"id":"a","output":"logits"}}],"outputs":[{"name":"output_0"}]},{"model_name":"keywords","inputs":[{"name":"input_0","shape":[1,4],"datatype":"FP32","data":[1,2,3,4]},{"name":"ids","shape":[1],"datatype":"INT64","data":[1]},{"name":"positions","shape":[1],"datatype":"INT64","data":[2]},{"name":"mask","shape":[1],"datatype":"BOOL","data":[true]},{"name":"features.image","shape":[1,2,2],"datatype":"FP32","data":[2,4,6,8]},{"name":"features.scales.0","shape":[4],"datatype":"FP32","data":[1,1,1,1]},{"name":"features.scales.1","shape":[4],"datatype":"FP32","data":[0,0,0,0]},{"name":"input_3","$from":{"id":"a","output":"kept"}}]}]
< 200
json [{"id":"a","status":200},{"status":200,"model_name":"keywords","model_version":"1","outputs":[{"name":"output_0","datatype":"FP32","shape":[1,4],"data":[1.0,2.0,3.0,4.0]}]},{"status":400,"error":"inputs[7].$from: expected bool[?], got sint64[?]"}]
post /v2/batch [{"id":"a","model_name":"keywords","answer":false,"inputs":[{"name":"input_0","shape":[1,4],"datatype":"FP32","data":[1,2,3,4]},{"name":"ids","shape":[1],"datatype":"INT64","data":[1]},{"name":"positions","shape":[1],"datatype":"INT64","data":[2]},{"name":"mask","shape":[1],"datatype":"BOOL","data":[true]},{"name":"features.image","shape":[1,2,2],"datatype":"FP32","data":[2,4,6,8]},{"name":"features.scales.0","shape":[4],"datatype":"FP32","data":[1,1,1,1]},{"name":"features.scales.1","shape":[4],"datatype":"FP32","data":[0,0,0,0]}]},{"model_name":"keywords","inputs":[{"name":"input_0","shape":[1,4],"datatype":"FP32","data":[1,2,3,4]},{"name":"ids","shape":[1],"datatype":"INT64","data":[1]},{"name":"positions","shape":[1],"datatype":"INT64","data":[2]},{"name":"mask","shape":[1],"datatype":"BOOL","data":[true]},{"name":"features.image","shape":[1,2,2],"datatype":"FP32","data":[2,4,6,8]},{"name":"features.scales.0","shape":[4],"datatype":"FP32","data":[1,1,1,1]},{"name":"features.scales.1","shape":[4],"datatype":"FP32","data":[0,0,0,0]},{"name":"input_0","$from":{"id":"a","output":"output_0"}}]}]
< 200
json [{"id":"a","status":200},{"status":400,"error":"inputs[7]: repeats the name of inputs[0]"}]
post /v2/batch [{"id":"a","model_name":"keywords","answer":false,"inputs":[{"name":"input_0","shape":[1,4],"datatype":"FP32","data":[1,2,3,4]},{"name":"ids","shape":[1],"datatype":"INT64","data":[1]},{"name":"positions","shape":[1],"datatype":"INT64","data":[2]},{"name":"mask","shape":[1],"datatype":"BOOL","data":[true]},{"name":"features.image","shape":[1,2,2],"datatype":"FP32","data":[2,4,6,8]},{"name":"features.scales.0","shape":[4],"datatype":"FP32","data":[1,1,1,1]},{"name":"features.scales.1","shape":[4],"datatype":"FP32","data":[0,0,0,0]}]},{"model_name":"keywords","inputs":[{"name":"input_0","shape":[1,4],"datatype":"FP32","data":[1,2,3,4]},{"name":"ids","shape":[1],"datatype":"INT64","data":[1]},{"name":"positions","shape":[1],"datatype":"INT64","data":[2]},{"name":"mask","shape":[1],"datatype":"BOOL","data":[true]},{"name":"features.image","shape":[1,2,2],"datatype":"FP32","data":[2,4,6,8]},{"name":"features.scales.0","shape":[4],"datatype":"FP32","data":[1,1,1,1]},{"name":"features.scales.1","shape":[4],"datatype":"FP32","data":[0,0,0,0]},{"name":"input_1","$from":{"id":"a","output":"output_3"}}]}]
< 200
json [{"id":"a","status":200},{"status":400,"error":"inputs[7].name: 'input_1' is inputs[1] 'ids'"}]

play unknown names
post /v2/models/keywords/infer {"inputs":[{"name":"input_0","shape":[1,4],"datatype":"FP32","data":[1,2,3,4]},{"name":"ids","shape":[1],"datatype":"INT64","data":[1]},{"name":"positions","shape":[1],"datatype":"INT64","data":[2]},{"name":"masks","shape":[1],"datatype":"BOOL","data":[true]},{"name":"features.image","shape":[1,2,2],"datatype":"FP32","data":[2,4,6,8]},{"name":"features.scales.0","shape":[4],"datatype":"FP32","data":[1,1,1,1]},{"name":"features.scales.1","shape":[4],"datatype":"FP32","data":[0,0,0,0]}]}
< 400
json {"error":"inputs[3].name: model 'keywords' has no input 'masks', expected one of input_0, ids, positions, mask, features.image, features.scales.0 and features.scales.1"}
post /v2/models/keywords/infer {"inputs":[{"name":"input_0","shape":[1,4],"datatype":"FP32","data":[1,2,3,4]},{"name":"ids","shape":[1],"datatype":"INT64","data":[1]},{"name":"positions","shape":[1],"datatype":"INT64","data":[2]},{"name":"input_7","shape":[1],"datatype":"BOOL","data":[true]},{"name":"features.image","shape":[1,2,2],"datatype":"FP32","data":[2,4,6,8]},{"name":"features.scales.0","shape":[4],"datatype":"FP32","data":[1,1,1,1]},{"name":"features.scales.1","shape":[4],"datatype":"FP32","data":[0,0,0,0]}]}
< 400
body .*model 'keywords' has no input 'input_7', expected .*
post /v2/models/keywords/infer {"inputs":[{"name":"input_0","shape":[1,4],"datatype":"FP32","data":[1,2,3,4]},{"name":"ids","shape":[1],"datatype":"INT64","data":[1]},{"name":"positions","shape":[1],"datatype":"INT64","data":[2]},{"name":"input_03","shape":[1],"datatype":"BOOL","data":[true]},{"name":"features.image","shape":[1,2,2],"datatype":"FP32","data":[2,4,6,8]},{"name":"features.scales.0","shape":[4],"datatype":"FP32","data":[1,1,1,1]},{"name":"features.scales.1","shape":[4],"datatype":"FP32","data":[0,0,0,0]}]}
< 400
body .*model 'keywords' has no input 'input_03', expected .*
post /v2/models/keywords/infer {"inputs":[{"name":"input_0","shape":[1,4],"datatype":"FP32","data":[1,2,3,4]},{"name":"ids","shape":[1],"datatype":"INT64","data":[1]},{"name":"positions","shape":[1],"datatype":"INT64","data":[2]},{"name":"input_","shape":[1],"datatype":"BOOL","data":[true]},{"name":"features.image","shape":[1,2,2],"datatype":"FP32","data":[2,4,6,8]},{"name":"features.scales.0","shape":[4],"datatype":"FP32","data":[1,1,1,1]},{"name":"features.scales.1","shape":[4],"datatype":"FP32","data":[0,0,0,0]}]}
< 400
body .*model 'keywords' has no input 'input_', expected .*
post /v2/models/keywords/infer {"inputs":[{"name":"input_0","shape":[1,4],"datatype":"FP32","data":[1,2,3,4]},{"name":"ids","shape":[1],"datatype":"INT64","data":[1]},{"name":"positions","shape":[1],"datatype":"INT64","data":[2]},{"name":"INPUT_0","shape":[1],"datatype":"BOOL","data":[true]},{"name":"features.image","shape":[1,2,2],"datatype":"FP32","data":[2,4,6,8]},{"name":"features.scales.0","shape":[4],"datatype":"FP32","data":[1,1,1,1]},{"name":"features.scales.1","shape":[4],"datatype":"FP32","data":[0,0,0,0]}]}
< 400
body .*model 'keywords' has no input 'INPUT_0', expected .*
post /v2/models/keywords/infer {"inputs":[{"name":"input_0","shape":[1,4],"datatype":"FP32","data":[1,2,3,4]},{"name":"ids","shape":[1],"datatype":"INT64","data":[1]},{"name":"positions","shape":[1],"datatype":"INT64","data":[2]},{"name":"input_4294967296","shape":[1],"datatype":"BOOL","data":[true]},{"name":"features.image","shape":[1,2,2],"datatype":"FP32","data":[2,4,6,8]},{"name":"features.scales.0","shape":[4],"datatype":"FP32","data":[1,1,1,1]},{"name":"features.scales.1","shape":[4],"datatype":"FP32","data":[0,0,0,0]}]}
< 400
body .*model 'keywords' has no input 'input_4294967296', expected .*
post /v2/models/keywords/infer {"inputs":[{"name":"input_0","shape":[1,4],"datatype":"FP32","data":[1,2,3,4]},{"name":"ids","shape":[1],"datatype":"INT64","data":[1]},{"name":"positions","shape":[1],"datatype":"INT64","data":[2]},{"name":"","shape":[1],"datatype":"BOOL","data":[true]},{"name":"features.image","shape":[1,2,2],"datatype":"FP32","data":[2,4,6,8]},{"name":"features.scales.0","shape":[4],"datatype":"FP32","data":[1,1,1,1]},{"name":"features.scales.1","shape":[4],"datatype":"FP32","data":[0,0,0,0]}]}
< 400
body .*model 'keywords' has no input '', expected .*

play messages call inputs what the request calls them
post /v2/models/keywords/infer {"inputs":[{"name":"input_0","shape":[1,4],"datatype":"FP32","data":[1,2,3,4]},{"name":"ids","shape":[2],"datatype":"INT64","data":[1,2]},{"name":"positions","shape":[1],"datatype":"INT64","data":[2]},{"name":"mask","shape":[1],"datatype":"BOOL","data":[true]},{"name":"features.image","shape":[1,2,2],"datatype":"FP32","data":[2,4,6,8]},{"name":"features.scales.0","shape":[4],"datatype":"FP32","data":[1,1,1,1]},{"name":"features.scales.1","shape":[4],"datatype":"FP32","data":[0,0,0,0]}]}
< 400
body .*(input|inputs\[[0-9]\]) '(ids|positions|mask|input_0|features\.image)'.*dim 0 is.*
post /v2/models/keywords/infer {"inputs":[{"name":"input_0","shape":[1,4],"datatype":"FP32","data":[1,2,3,4]},{"name":"input_1","shape":[1],"datatype":"INT32","data":[1]},{"name":"input_2","shape":[1],"datatype":"INT64","data":[2]},{"name":"input_3","shape":[1],"datatype":"BOOL","data":[true]},{"name":"input_4","shape":[1,2,2],"datatype":"FP32","data":[2,4,6,8]},{"name":"input_5","shape":[4],"datatype":"FP32","data":[1,1,1,1]},{"name":"input_6","shape":[4],"datatype":"FP32","data":[0,0,0,0]}]}
< 400
json {"error":"input 'input_1': datatype is INT32, expected INT64"}
post /v2/models/keywords/infer {"inputs":[{"name":"input_0","shape":[1,4],"datatype":"FP32","data":[1,2,3,4]},{"name":"ids","shape":[9],"datatype":"INT64","data":[1,1,1,1,1,1,1,1,1]},{"name":"positions","shape":[1],"datatype":"INT64","data":[2]},{"name":"mask","shape":[1],"datatype":"BOOL","data":[true]},{"name":"features.image","shape":[1,2,2],"datatype":"FP32","data":[2,4,6,8]},{"name":"features.scales.0","shape":[4],"datatype":"FP32","data":[1,1,1,1]},{"name":"features.scales.1","shape":[4],"datatype":"FP32","data":[0,0,0,0]}]}
< 400
body .*'ids'.*dim 0 is 9.*8.*
post /v2/models/keywords/infer {"inputs":[{"name":"input_0","shape":[1,4],"datatype":"FP32","data":[1,2,3,4]},{"name":"ids","shape":[1],"datatype":"INT64","data":[1]},{"name":"positions","shape":[1],"datatype":"INT64","data":[2]}]}
< 400
body .*input 'mask' is missing.*
post /v2/models/keywords/call {"args":[[[1,2,3,4]],{"ids":[1],"positions":[2]}],"kwargs":{"mask":[true],"features":{"image":[[[2,4],[6,8]]],"scales":[[1,1,1,1],[0,0,0,0]]}}}
< 200
json {"result":{"logits":[[1.0,2.0,3.0,4.0]],"boxes":[[[4.0,6.0]],[[0.0,0.0,0.0,0.0]]],"kept":[1]}}
post /v2/models/keywords/call {"args":[[[1,2,3,4]],{"ids":[1,2],"positions":[2]}],"kwargs":{"mask":[true],"features":{"image":[[[2,4],[6,8]]],"scales":[[1,1,1,1],[0,0,0,0]]}}}
< 400
body .*(args\[0\]|args\[1\]\[\\"(ids|positions)\\"\]|kwargs\[\\"[a-z"\\\[\]]+\]): dim 0 is.*
post /v2/models/keywords/call {"args":[[[1,2,3,4]],{"ids":[1,1,1,1,1,1,1,1,1],"positions":[2]}],"kwargs":{"mask":[true],"features":{"image":[[[2,4],[6,8]]],"scales":[[1,1,1,1],[0,0,0,0]]}}}
< 400
body .*args\[1\]\[\\"ids\\"\]: dim 0 is 9.*
post /v2/models/keywords/call {"args":[[[1,2,3,4]],{"ids":[1],"positions":[2]}],"kwargs":{"mask":[true,true],"features":{"image":[[[2,4],[6,8]]],"scales":[[1,1,1,1],[0,0,0,0]]}}}
< 400
body .*kwargs\[\\"mask\\"\]: dim 0 is 2.*
post /v2/models/keywords/shape {"args":[[[1,2,3,4]],{"ids":[1],"positions":[2]}],"kwargs":{"mask":{"dtype":"bool","shape":[9]},"features":{"image":{"dtype":"float32","shape":[1,2,2]}}}}
< 400
body .*kwargs\[\\"mask\\"\]: dim 0 is 9.*
post /v2/batch [{"model_name":"keywords","args":[[[1,2,3,4]],{"ids":[1,1,1,1,1,1,1,1,1],"positions":[2]}],"kwargs":{"mask":[true],"features":{"image":[[[2,4],[6,8]]],"scales":[[1,1,1,1],[0,0,0,0]]}}},{"model_name":"keywords","inputs":[{"name":"input_0","shape":[1,4],"datatype":"FP32","data":[1,2,3,4]},{"name":"ids","shape":[9],"datatype":"INT64","data":[1,1,1,1,1,1,1,1,1]},{"name":"positions","shape":[1],"datatype":"INT64","data":[2]},{"name":"mask","shape":[1],"datatype":"BOOL","data":[true]},{"name":"features.image","shape":[1,2,2],"datatype":"FP32","data":[2,4,6,8]},{"name":"features.scales.0","shape":[4],"datatype":"FP32","data":[1,1,1,1]},{"name":"features.scales.1","shape":[4],"datatype":"FP32","data":[0,0,0,0]}]}]
< 200
body .*args\[1\]\[\\"ids\\"\]: dim 0 is 9.*\'ids\'.*dim 0 is 9.*

play keys that are no names
get /v2/models/odd_keys
< 200
body .*"inputs":\[\{"name":"plain",.*\{"name":"input_1",.*\{"name":"0\.a\.b",.*\{"name":"input_3",.*\{"name":"input_8",.*\{"name":"7",.*\{"name":"07",.*\{"name":"a\.b",.*
get /v2/models/odd_keys.pairs
< 200
body .*"inputs":\[\{"name":"0\.image",[^}]*\},\{"name":"1\.image",[^}]*\},\{"name":"image",[^}]*\}\],"outputs":\[\{"name":"0\.boxes",[^}]*\},\{"name":"only",[^}]*\},\{"name":"output_2",[^}]*\},\{"name":"output_3",[^}]*\}\].*
post /v2/models/odd_keys.pairs/infer {"inputs":[{"name":"0.image","shape":[3],"datatype":"FP32","data":[1,2,3]},{"name":"1.image","shape":[3],"datatype":"FP32","data":[4,5,6]},{"name":"image","shape":[3],"datatype":"FP32","data":[1,1,2]}],"outputs":[{"name":"only"},{"name":"output_2"}]}
< 200
json {"model_name":"odd_keys.pairs","model_version":"1","outputs":[{"name":"only","datatype":"FP32","shape":[3],"data":[4.0,5.0,12.0]},{"name":"output_2","datatype":"FP32","shape":[3],"data":[3.0,4.0,5.0]}]}
